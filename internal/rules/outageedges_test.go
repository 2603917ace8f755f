// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestNodeGoneOfATicket(t *testing.T) {
	granted := func(changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("m", ledger.TypeManual, "dead", append([]func(*ledger.Ticket){grantedNow}, changes...)...)
	}
	earlier := func(uid string) ledger.Event {
		return granted(func(k *ledger.Ticket) { k.NodeGone = ledger.Outage{Elapsed: 3 * time.Minute, NodeUID: uid} })
	}
	gone := ledger.NodeGone{Name: "dead"}
	for name, test := range map[string]struct {
		facts []ledger.Event // after the ticket
		k     ledger.Event
		left  time.Duration // after two minutes; -1: no rule
		keep  ledger.Outage
	}{
		"not Ready":                      {[]ledger.Event{nodeAs("dead", silent), ledger.NodeLease{Node: "dead", Renewed: 7}}, granted(), -1, ledger.Outage{}},
		"Ready":                          {[]ledger.Event{alive}, granted(), -1, ledger.Outage{}},
		"deleted":                        {[]ledger.Event{gone}, granted(), 4 * time.Minute, ledger.Outage{Elapsed: 2 * time.Minute, NodeUID: "x"}},
		"it only asks":                   {[]ledger.Event{gone}, asksAt("m", ledger.TypeManual, "dead"), -1, ledger.Outage{}},
		"an earlier process began":       {[]ledger.Event{gone}, earlier("x"), time.Minute, ledger.Outage{Elapsed: 5 * time.Minute, NodeUID: "x"}},
		"an earlier one, another Node":   {[]ledger.Event{gone}, earlier("y"), 4 * time.Minute, ledger.Outage{Elapsed: 2 * time.Minute, NodeUID: "x"}},
		"an earlier one, and it saw all": {[]ledger.Event{alive, gone}, earlier("x"), 4 * time.Minute, ledger.Outage{Elapsed: 2 * time.Minute, NodeUID: "x"}},
		"nobody knows its node":          {nil, asksAt("m", ledger.TypeManual, "", grantedNow), -1, ledger.Outage{}},
		"it has no volumes":              {[]ledger.Event{gone}, granted(func(k *ledger.Ticket) { k.Volumes = nil }), -1, ledger.Outage{}},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{test.k}, test.facts...)...)
		f, keep := nodeGone(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime.Add(2*time.Minute))
		if (f.Rule == "") != (test.left < 0) || test.left >= 0 && f.Left != test.left || keep != test.keep {
			t.Errorf("%s: %+v, keeps %+v", name, f, keep)
		}
	}
}

// A ticket that moves avoids nodes that Moorage would not choose.
func TestLeavesItsNode(t *testing.T) {
	moving := func(n ledger.NodeName, changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("m", ledger.TypeManual, n, append([]func(*ledger.Ticket){func(k *ledger.Ticket) { k.Wherever, k.OnDrain = true, ledger.MoveOnDrain }}, changes...)...)
	}
	stays := func(k *ledger.Ticket) { k.OnDrain = ledger.StayOnDrain }
	cordoned := nodeAs("well", func(n *ledger.NodeState) { n.Draining = true })
	gone := []ledger.Event{ledger.NodeGone{Name: "well"}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		cause EndCause
		want  string // the message; empty: none
	}{
		"its node is well":          {[]ledger.Event{moving("well")}, "", ""},
		"cordoned":                  {[]ledger.Event{moving("well"), cordoned}, EndNodeCordoned, "is cordoned"},
		"cordoned, and granted":     {[]ledger.Event{moving("well", grantedNow), cordoned}, EndNodeCordoned, "is cordoned"},
		"cordoned, and it stays":    {[]ledger.Event{moving("well", stays), cordoned}, "", ""},
		"not Ready":                 {[]ledger.Event{moving("well"), nodeAs("well", silent)}, "", "takes no tickets now"},
		"not Ready, and granted":    {[]ledger.Event{moving("well", grantedNow), nodeAs("well", silent)}, "", ""},
		"not Ready, and it stays":   {[]ledger.Event{moving("well", stays), nodeAs("well", silent)}, "", ""},
		"it has none yet":           {[]ledger.Event{moving("")}, "", ""},
		"gone":                      {append([]ledger.Event{moving("well")}, gone...), "", "takes no tickets now"},
		"gone, and granted":         {append([]ledger.Event{moving("well", grantedNow)}, gone...), "", ""},
		"emptied, and then deleted": {append([]ledger.Event{moving("well", grantedNow), cordoned}, gone...), "", ""},
		"a node that nobody knows":  {[]ledger.Event{moving("nowhere", func(k *ledger.Ticket) { k.Volumes = nil })}, "", "takes no tickets now"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		k := p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})
		got := leaves(p.snapshot, k, auditTime)
		if len(got) > 0 != (test.want != "") || test.want != "" && (got[0].Detail != test.want || got[0].Code != LeavesNode || got[0].Node != k.Node) || MovesFor(p.snapshot, k, auditTime) != test.cause {
			t.Errorf("%s: %+v, %q", name, got, MovesFor(p.snapshot, k, auditTime))
		}
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{moving("well", grantedNow)}, gone...)...)
	k := p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})
	if got := leaves(p.snapshot, k, auditTime.Add(AfterNodeDeleted)); len(got) != 1 || got[0].Detail != "does not exist any more" || MovesFor(p.snapshot, k, auditTime.Add(AfterNodeDeleted)) != EndNodeDeleted {
		t.Errorf("gone for long enough: %+v", got)
	}
	if got := EndCauses(); !slices.Equal(got, []EndCause{"TimeOver", "NodeCordoned", "NodeDeleted"}) {
		t.Errorf("causes: %q", got)
	}
}

func TestWhoKeepsSlotsElsewhere(t *testing.T) {
	waits := func(name string, n ledger.NodeName, created int64, changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt(name, ledger.TypeManual, n, append([]func(*ledger.Ticket){func(k *ledger.Ticket) { k.Created, k.Reason = created, string(NoFreeSlot) }}, changes...)...)
	}
	own := Request{Type: ledger.TypeManual, Created: 5, Who: ledger.Requester{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}, Ticket: ledger.TicketID{Namespace: "shop", Name: "m"}, Needs: []Need{{Name: "data", Volume: disk, Access: ledger.AccessNode}}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  string
		at    ledger.NodeName
	}{
		"nobody":                     {nil, "", ""},
		"one that ranks before":      {[]ledger.Event{waits("a", "dead", 4)}, "a", "dead"},
		"one that ranks after":       {[]ledger.Event{waits("a", "dead", 6)}, "", ""},
		"the request itself":         {[]ledger.Event{waits("m", "dead", 5)}, "", ""},
		"one at this node":           {[]ledger.Event{waits("a", "well", 4)}, "", ""},
		"the older of two":           {[]ledger.Event{waits("a", "dead", 4), waits("b", "dead", 3)}, "b", "dead"},
		"the older, seen first":      {[]ledger.Event{waits("b", "dead", 3), waits("a", "dead", 4)}, "b", "dead"},
		"the older, at another node": {[]ledger.Event{waits("a", "dead", 4), waits("b", "third", 3)}, "b", "third"},
		"one that is granted":        {[]ledger.Event{waits("a", "dead", 4, grantedNow)}, "", ""},
		"one that waits for others":  {[]ledger.Event{asksAt("a", ledger.TypeManual, "dead", func(k *ledger.Ticket) { k.Created, k.Reason = 4, string(HeldElsewhere) })}, "", ""},
		"one that yields":            {[]ledger.Event{asksAt("a", ledger.TypeBackup, "dead", func(k *ledger.Ticket) { k.Created, k.Reason = 4, string(NoFreeSlot) })}, "", ""},
		"a pod":                      {[]ledger.Event{dataAt("q", "dead", ledger.PodLive)}, "", ""},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		q := Arbiter{}.Queue(p.snapshot, "well", auditTime)
		for range 2 { // the second time it is known
			got, kept := q.keptElsewhere(own)
			if kept != (test.want != "") || got.request.Who.Name != test.want || got.node != test.at || kept && got.need.Name != "data" {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if _, kept := q.keptElsewhere(Request{}); kept {
			t.Errorf("%s: for a request for nothing", name)
		}
	}
}

func TestAlikeNodes(t *testing.T) {
	for name, change := range map[string]func(*ledger.Node){
		"Shutdown": func(n *ledger.Node) { n.Shutdown = true }, "OutOfService": func(n *ledger.Node) { n.OutOfService = true },
		"CutOff": func(n *ledger.Node) { n.CutOff = []string{"d"} }, "FencedAt": func(n *ledger.Node) { n.FencedAt = []ledger.FencedAt{{Void: true}} },
		"Draining": func(n *ledger.Node) { n.Draining = true }, "Labels": func(n *ledger.Node) { n.Labels = map[string]string{"a": "b"} },
		"Reporting": func(n *ledger.Node) { n.Reporting = true }, "ReadySince": func(n *ledger.Node) { n.ReadySince = 1 },
	} {
		a, b := &ledger.Node{}, &ledger.Node{}
		if change(b); alike(a, b) || alike(b, a) || !alike(b, b) {
			t.Errorf("nodes that differ in %s are alike", name)
		}
	}
}

func TestSayBrake(t *testing.T) {
	brake := Brake{true, ledger.Zone{Name: "a"}}
	for name, test := range map[string]struct {
		f    forcing
		h    ledger.Hold
		want ledger.Code
	}{
		"a brake":                    {forcing{Brake: brake}, ledger.Hold{}, NodeUnreachable},
		"no brake":                   {forcing{}, ledger.Hold{}, ""},
		"a rule is timed beside it":  {forcing{Rule: AfterPodGone, Left: 1, Brake: brake}, ledger.Hold{}, ""},
		"the hold says another word": {forcing{Brake: brake}, ledger.Hold{Reason: InUse, Message: "x"}, InUse},
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{})
		p.sayBrake(&test.h, p.at("dead"), test.f)
		if test.h.Reason != test.want || (test.h.Message == "") != (test.want == "") {
			t.Errorf("%s: %+v", name, test.h)
		}
	}
}

func TestAttachedWhere(t *testing.T) {
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  string
	}{
		"attached":       {[]ledger.Event{madeAt("well")}, "well"},
		"it goes":        {[]ledger.Event{madeAt("well", goes)}, "well (being detached)"},
		"its detach":     {[]ledger.Event{madeAt("well", refusedToGo)}, "well (its detach fails)"},
		"nothing is now": {[]ledger.Event{dataAt("q", "well", ledger.PodLive)}, "well"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		if got := attachedWhere(p.at("well")); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// For a detached ticket: only without users. For others: unless a ticket keeps the volume detached.
func TestFreeToBeDetached(t *testing.T) {
	for name, test := range map[string]struct {
		node  ledger.NodeName
		facts []ledger.Event
		want  []ledger.Code
	}{
		"for a node, nobody":       {"well", nil, nil},
		"for a node, a pod has it": {"well", []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, nil},
		"for none, nobody":         {ledger.Detached, nil, nil},
		"for none, a pod has it":   {ledger.Detached, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, []ledger.Code{HeldElsewhere}},
		"for a node, and detached": {"well", []ledger.Event{keepsOff("m")}, []ledger.Code{StaysDetached}},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append([]ledger.Event{alive, sharedDisk}, test.facts...)...)
		w := evaluation{snapshot: p.snapshot, now: auditTime, node: test.node, request: Request{Type: ledger.TypeManual, Created: 5, Ticket: ledger.TicketID{Namespace: "shop", Name: "own"}, Who: ledger.Requester{UID: "own"}}}
		if got := codes(w.free(p.snapshot.Volume(disk), Need{Name: "data", Volume: disk, Access: ledger.AccessMany})); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
