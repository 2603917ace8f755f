// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A final refusal comes first. A waiting ticket asks again before its grant.
func TestDecide(t *testing.T) {
	id := ledger.TicketID{Namespace: "shop", Name: "m"}
	told := func(code ledger.Code) func(*ledger.Ticket) {
		return func(k *ledger.Ticket) { k.Reason = string(code) }
	}
	often := func(k *ledger.Ticket) { k.Reason, k.Interruptions = string(Outranked), 3 }
	empty := func(k *ledger.Ticket) { k.Volumes = nil }
	manual := func(changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("m", ledger.TypeManual, "well", changes...)
	}
	inTheWay := dataAt("q", "dead", ledger.PodLive)
	lost := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "2", PersistentVolume: "pv", Lost: true}
	gone := ledger.NodeGone{Name: "well"}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  []ledger.Code
		gets  bool
	}{
		"granted":                         {[]ledger.Event{manual()}, nil, true},
		"somebody has it":                 {[]ledger.Event{inTheWay, manual()}, []ledger.Code{HeldElsewhere}, false},
		"it was told why it waits":        {[]ledger.Event{manual(told(HeldElsewhere))}, nil, true},
		"it asks anew":                    {[]ledger.Event{manual(told(NotGranted))}, nil, true},
		"told, and it asks for nothing":   {[]ledger.Event{manual(told(HeldElsewhere), empty)}, nil, true},
		"it pauses":                       {[]ledger.Event{manual(often)}, []ledger.Code{Outranked}, false},
		"its node is fenced":              {[]ledger.Event{nodeAs("well", outOfOrder), manual()}, []ledger.Code{NodeFenced}, false},
		"fenced, and it pauses":           {[]ledger.Event{nodeAs("well", outOfOrder), manual(often)}, []ledger.Code{NodeFenced}, false},
		"the Node is gone":                {[]ledger.Event{manual(), gone}, []ledger.Code{NodeMissing}, false},
		"gone, and somebody has it":       {[]ledger.Event{inTheWay, manual(), gone}, []ledger.Code{NodeMissing}, false},
		"gone, and its claim is lost":     {[]ledger.Event{manual(), lost, gone}, []ledger.Code{ClaimLost, NodeMissing}, false},
		"its claim is lost":               {[]ledger.Event{manual(), lost}, []ledger.Code{ClaimLost}, false},
		"the node is full":                {[]ledger.Event{ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 0}}}, manual()}, []ledger.Code{SlotsNotKept}, false},
		"told, and nothing is to be held": {[]ledger.Event{sharedDisk, manual(told(HeldElsewhere))}, nil, true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append([]ledger.Event{alive}, test.facts...)...)
		k := p.snapshot.Ticket(id)
		q := Arbiter{}.Queue(p.snapshot, "well", auditTime)
		d := q.decide(k, TicketRequest(p.snapshot, k))
		if got := codes(d.verdict.Reasons); !slices.Equal(got, test.want) || d.gets != test.gets {
			t.Errorf("%s: %q, gets it: %t; want %q, %t", name, got, d.gets, test.want, test.gets)
			continue
		}
		if first := d.verdict.First(); first.Code == NotGranted && (first.Volume != disk || first.Claim != "data") || (first.Code == Outranked || first.Code == NodeMissing) && first.Node != "well" {
			t.Errorf("%s: %+v", name, first)
		}
	}
}

// A ticket that waits for others, or is refused for good, gets none.
func TestHandOut(t *testing.T) {
	inTheWay := dataAt("q", "dead", ledger.PodLive)
	lost := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "2", PersistentVolume: "pv", Lost: true}
	full := []ledger.Event{
		ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 1}}},
		ledger.Pod{UID: "o", Version: "1", Namespace: "shop", Name: "o", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Inline: ledger.VolumeID{Driver: "d", Handle: "other"}}}},
	}
	andUnseen := func(k *ledger.Ticket) { k.Volumes = append(k.Volumes, ledger.TicketVolume{PersistentVolume: "unseen"}) }
	for name, test := range map[string]struct {
		facts       []ledger.Event
		given, kept bool
	}{
		"granted":                    {[]ledger.Event{asksAt("m", ledger.TypeManual, "well")}, true, false},
		"it is to ask anew":          {[]ledger.Event{asksAt("m", ledger.TypeManual, "well", func(k *ledger.Ticket) { k.Reason = string(HeldElsewhere) })}, true, false},
		"it waits for others":        {[]ledger.Event{inTheWay, asksAt("m", ledger.TypeManual, "well")}, false, false},
		"it waits for a volume":      {[]ledger.Event{asksAt("m", ledger.TypeManual, "well", andUnseen)}, false, false},
		"it waits for slots":         {append(full[:2:2], asksAt("m", ledger.TypeManual, "well")), false, true},
		"it waits for slots, yields": {append(full[:2:2], asksAt("m", ledger.TypeBackup, "well")), false, false},
		"its claim is lost":          {[]ledger.Event{asksAt("m", ledger.TypeManual, "well"), lost}, false, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append([]ledger.Event{alive}, test.facts...)...)
		k := p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})
		q := Arbiter{}.Queue(p.snapshot, "well", auditTime)
		q.handOut(k)
		if got := q.slots; got.given[disk] != test.given || got.kept[disk] != test.kept {
			t.Errorf("%s: given %t, kept %t, %+v", name, got.given[disk], got.kept[disk], q.decided[k.ID].verdict)
		}
	}
}

// Holders, then users at a node, then asking tickets.
func TestBlockedAt(t *testing.T) {
	asks := func(name string, n ledger.NodeName) ledger.Event { return asksAt(name, ledger.TypeManual, n) }
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		facts  []ledger.Event
		want   ledger.NodeName
	}{
		"nobody":                     {"", nil, ""},
		"somebody asks":              {"", []ledger.Event{asks("a", "well")}, "well"},
		"two ask":                    {"", []ledger.Event{asks("a", "dead"), asks("b", "well")}, "dead"},
		"who asks itself":            {"", []ledger.Event{asks("r", "well")}, ""},
		"one asks, and one lives":    {"", []ledger.Event{asks("a", "dead"), dataAt("q", "well", ledger.PodLive)}, "well"},
		"two live, and one has it":   {"well", []ledger.Event{dataAt("o", "dead", ledger.PodLive), dataAt("q", "well", ledger.PodLive)}, "well"},
		"one lives, and none has it": {"", []ledger.Event{dataAt("o", "dead", ledger.PodLive)}, "dead"},
		"one leaves":                 {"well", []ledger.Event{dataAt("q", "well", ledger.PodTerminating)}, ""},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, ledger.Hold{State: ledger.HoldHeld}, append([]ledger.Event{alive}, test.facts...)...)
		r := needing("d/h")
		r.Created = 9
		w := evaluation{snapshot: p.snapshot, request: r, now: auditTime}
		if got := w.blockedAt(p.volume); got != test.want {
			t.Errorf("%s: at %q, want %q", name, got, test.want)
		}
	}
}

func TestMissingByTheHold(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	migrates := []ledger.Event{alive, ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}, madeAt("dead"), dataAt("o", "dead", ledger.PodLive), migration("m", "well", ledger.TicketGranted)}
	another := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2", Limit: 4}}}
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		facts  []ledger.Event
		want   ledger.Code
	}{
		"held elsewhere":           {"dead", []ledger.Event{lives}, NodeUnreachable},
		"elsewhere, and shared":    {"dead", []ledger.Event{lives, sharedDisk}, Attaching},
		"where nothing of it is":   {"dead", []ledger.Event{lives, alive}, NotGranted},
		"held here":                {"well", []ledger.Event{lives, alive}, Attaching},
		"no hold":                  {"dead", []ledger.Event{lives, alive, ledger.HoldGone{Volume: disk}}, Attaching},
		"the node here is fenced":  {"dead", []ledger.Event{lives, nodeAs("well", outOfOrder)}, NodeFenced},
		"attached, not yet listed": {"well", []ledger.Event{lives, alive, madeAt("well")}, NotReported},
		"it migrates here":         {"dead", migrates, Attaching},
		"attached to another":      {"well", []ledger.Event{lives, alive, another, madeAt("well", func(a *ledger.Attachment) { a.NodeID = "i-1" })}, NodeReplaced},
		"nobody attaches here":     {"well", []ledger.Event{lives, alive, nodeAs("well", func(n *ledger.NodeState) { n.Managed = false })}, NodeUnmanaged},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, ledger.Hold{State: ledger.HoldHeld}, test.facts...)
		got := Arbiter{}.missing(p.snapshot, p.volume, p.at("well"), auditTime)
		if len(got) == 0 || got[0].Code != test.want {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

func TestMissingWithoutAnAttachment(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	lists := func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{iscsi} }
	for name, test := range map[string]struct {
		other ledger.Event
		at    ledger.NodeName
		want  ledger.Code
	}{
		"not listed yet":         {alive, "well", NotReported},
		"listed by another node": {nodeAs("dead", lists), "dead", Detaching},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.other,
			ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "1", Node: "well", State: ledger.HoldHeld}},
			ledger.Pod{UID: "q", Version: "1", Namespace: "shop", Name: "q", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Inline: iscsi, Access: ledger.AccessNode}}})
		v := p.snapshot.Volume(iscsi)
		got := Arbiter{}.missing(p.snapshot, v, v.OnNode("well"), auditTime)
		if len(got) != 1 || got[0].Code != test.want || got[0].Node != test.at {
			t.Errorf("%s: %+v, want %s at %s", name, got, test.want, test.at)
		}
	}
}

func TestExplainNamesTheNeed(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, alive, dataAt("q", "well", ledger.PodLive))
	for _, test := range []struct {
		need Need
		want ledger.Code
	}{
		{Need{Name: "mine", Volume: disk, Link: ledger.LinkVolume}, Attaching},
		{Need{Name: "mine", Link: ledger.LinkMissing}, ClaimMissing},
		{Need{Name: "mine", Volume: ledger.VolumeID{Driver: "d", Handle: "unknown"}, Link: ledger.LinkVolume}, NotGranted},
	} {
		if got := (Arbiter{}).Explain(p.snapshot, test.need, "well", auditTime).First(); got.Code != test.want || got.Claim != "mine" {
			t.Errorf("%+v: %+v", test.need, got)
		}
	}
}

// No hold reports a fenced node without the volume.
func TestConcernOfAHold(t *testing.T) {
	fencing := ledger.Hold{Reason: NodeFenced}
	gone := nodeAs("dead", outOfOrder)
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   ledger.Code
	}{
		"held by nobody, and attached": {"", ledger.Hold{State: ledger.HoldFree}, []ledger.Event{alive, madeAt("well")}, ""},
		"fenced":                       {"dead", fencing, []ledger.Event{gone, madeAt("dead")}, NodeFenced},
		"fenced, and nothing is there": {"dead", fencing, []ledger.Event{gone}, ""},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, test.facts...)
		got, found := Arbiter{}.Concern(p.snapshot, p.volume, auditTime)
		if got.Code != test.want || found != (test.want != "") {
			t.Errorf("%s: %+v (%t), want %q", name, got, found, test.want)
		}
	}
}

func TestPlanOfWhatIsNotThere(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, ledger.StorageClass{Name: "c", Version: "1", Driver: "d"},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, UID: "u", Version: "2", Class: "c"}, dataAt("q", "well", ledger.PodLive))
	unbound := ledger.UnboundClaim("d", "u")
	if p.snapshot.Volume(unbound) == nil {
		t.Fatal("nothing stands for the claim")
	}
	for _, v := range []ledger.VolumeID{{Driver: "d", Handle: "unknown"}, unbound} {
		if plan := (Arbiter{}).Plan(p.snapshot, v, auditTime); len(plan.Steps) > 0 || plan.Apart || !plan.Recheck.IsZero() {
			t.Errorf("of %s: %+v", v, plan)
		}
	}
}
