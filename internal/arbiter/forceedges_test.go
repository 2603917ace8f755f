// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// unreachableAfter is a policy that takes volumes from nodes that do not answer.
func unreachableAfter(d time.Duration) ledger.Event {
	return ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: &d}
}

// Which node has a volume: the one that had it while it may be there or somebody there has a
// right to it, then the one that is next, then the one where it is, then who ranks first.
func TestHolder(t *testing.T) {
	toDead := ledger.Promise{Node: "dead", To: ledger.Requester{Namespace: "shop", Name: "q", UID: "q"}}
	third := nodeAs("third")
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   ledger.NodeName
	}{
		"nobody":                       {"", ledger.Hold{}, nil, ""},
		"nobody any more":              {"well", ledger.Hold{}, nil, ""},
		"still attached":               {"well", ledger.Hold{}, []ledger.Event{madeAt("well"), dataAt("q", "dead", ledger.PodLive)}, "well"},
		"still used":                   {"well", ledger.Hold{}, []ledger.Event{dataAt("q", "well", ledger.PodTerminating), dataAt("r", "dead", ledger.PodLive)}, "well"},
		"still promised":               {"well", ledger.Hold{Requesters: []ledger.Requester{{UID: "m"}}}, []ledger.Event{asksAt("m", ledger.TypeManual, "well"), dataAt("q", "dead", ledger.PodLive)}, "well"},
		"only asked for":               {"well", ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeManual, "well"), dataAt("q", "dead", ledger.PodLive)}, "dead"},
		"who is next":                  {"well", ledger.Hold{Next: toDead}, []ledger.Event{dataAt("q", "dead", ledger.PodLive), dataAt("a", "third", ledger.PodLive)}, "dead"},
		"next, and gone":               {"well", ledger.Hold{Next: toDead}, []ledger.Event{dataAt("a", "third", ledger.PodLive)}, "third"},
		"found elsewhere":              {"well", ledger.Hold{}, []ledger.Event{madeAt("third"), dataAt("q", "dead", ledger.PodLive)}, "third"},
		"found, though nobody held it": {"", ledger.Hold{}, []ledger.Event{madeAt("third"), dataAt("q", "dead", ledger.PodLive)}, "third"},
		"who ranks first":              {"", ledger.Hold{}, []ledger.Event{dataAt("q", "dead", ledger.PodLive), dataAt("a", "third", ledger.PodLive)}, "third"},
		"left there":                   {"well", ledger.Hold{Stays: true}, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, "well"},
		"left at a node that is lost":  {"dead", ledger.Hold{Stays: true, Fences: []ledger.Fence{{Node: "dead", Rule: OutOfService, NodeUID: "x"}}}, []ledger.Event{nodeAs("dead", outOfOrder), ledger.NodeGone{Name: "dead"}, dataAt("q", "well", ledger.PodLive)}, "well"},
	} {
		facts := append([]ledger.Event{third, alive}, test.facts...)
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, facts...)
		if got := p.holder(hold(p.volume)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// What a hold says of a volume that does not leave: nothing where all is as it should be.
func TestDescribe(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	foreign := ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}
	for name, test := range map[string]struct {
		next  ledger.NodeName
		facts []ledger.Event
		state ledger.HoldState
		says  ledger.Code
	}{
		"somebody lives":          {"", []ledger.Event{alive, madeAt("well"), lives}, ledger.HoldHeld, ""},
		"and another is next":     {"dead", []ledger.Event{alive, madeAt("well"), lives}, ledger.HoldHeld, ""},
		"nobody lives":            {"", []ledger.Event{alive, madeAt("well")}, ledger.HoldHeld, ""},
		"nothing is there":        {"", []ledger.Event{alive}, ledger.HoldHeld, ""},
		"it goes":                 {"", []ledger.Event{alive, madeAt("well", goes)}, ledger.HoldHeld, ""},
		"the detach is refused":   {"", []ledger.Event{alive, madeAt("well", refusedToGo)}, ledger.HoldDetachPending, DetachFailed},
		"though somebody lives":   {"", []ledger.Event{alive, madeAt("well", refusedToGo), lives}, ledger.HoldDetachPending, DetachFailed},
		"in use":                  {"", []ledger.Event{alive, madeAt("well"), nodeAs("well", using)}, ledger.HoldHeld, ""},
		"the node is silent":      {"", []ledger.Event{alive, madeAt("well"), nodeAs("well", silent, using)}, ledger.HoldDetachPending, NodeUnreachable},
		"and somebody lives":      {"", []ledger.Event{alive, madeAt("well"), nodeAs("well", silent, using), lives}, ledger.HoldHeld, ""},
		"another's attachment":    {"", []ledger.Event{alive, foreign}, ledger.HoldUnknown, ForeignAttachment},
		"somebody else's, lives":  {"", []ledger.Event{alive, foreign, lives}, ledger.HoldHeld, ""},
		"it is elsewhere, too":    {"", []ledger.Event{alive, madeAt("well"), lives, madeAt("dead", refusedToGo)}, ledger.HoldUnknown, DetachFailed},
		"elsewhere, not answered": {"", []ledger.Event{madeAt("well"), lives}, ledger.HoldUnknown, NodeUnreachable},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		h := ledger.Hold{Node: "well", Next: ledger.Promise{Node: test.next}}
		p.describe(ledger.Hold{}, &h, p.at("well"))
		if h.State != test.state || h.Reason != test.says || (h.Message == "") != (test.says == "") {
			t.Errorf("%s: %s %s %q", name, h.State, h.Reason, h.Message)
		}
	}
}

// A hold says that a ticket at a fenced node has to be told that it gives way, be it the
// holder's or the next.
func TestRevoke(t *testing.T) {
	at := func(n ledger.NodeName, kind ledger.TicketType, changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("m", kind, n, changes...)
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  ledger.NodeName
	}{
		"granted at the holder's": {[]ledger.Event{alive, at("well", ledger.TypeManual, grantedNow), nodeAs("well", outOfOrder)}, "well"},
		"granted at the next":     {[]ledger.Event{at("dead", ledger.TypeManual, grantedNow), nodeAs("dead", outOfOrder)}, "dead"},
		"granted elsewhere":       {[]ledger.Event{alive, nodeAs("third", outOfOrder), at("third", ledger.TypeManual, grantedNow)}, ""},
		"not fenced":              {[]ledger.Event{alive, at("well", ledger.TypeManual, grantedNow)}, ""},
		"it only asks":            {[]ledger.Event{alive, at("well", ledger.TypeManual), nodeAs("well", outOfOrder)}, ""},
		"a pod":                   {[]ledger.Event{alive, dataAt("q", "well", ledger.PodLive), nodeAs("well", outOfOrder)}, ""},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		h := ledger.Hold{Node: "well", Next: ledger.Promise{Node: "dead"}}
		p.revoke(&h)
		want := Reason{Code: NodeFenced, Claim: "data", Node: test.want}.Message()
		if test.want == "" && h.Reason != "" || test.want != "" && (h.Reason != NodeFenced || h.Message != want) {
			t.Errorf("%s: %s %q", name, h.Reason, h.Message)
		}
	}
}

// That a rule's time is over stays in the hold until something is taken by it.
func TestKeepClock(t *testing.T) {
	ran := &ledger.Force{Rule: AfterUnreachable, Node: "dead", NodeUID: "x"}
	for name, test := range map[string]struct {
		force  *ledger.Force
		fences []ledger.Fence
		facts  []ledger.Event
		after  time.Duration
		want   bool
	}{
		"over":           {ran, nil, nil, 10 * time.Minute, true},
		"not over":       {ran, nil, nil, 9 * time.Minute, false},
		"none ran":       {nil, nil, nil, 10 * time.Minute, false},
		"another rule's": {&ledger.Force{Rule: AfterPodGone, Node: "dead"}, nil, nil, 10 * time.Minute, false},
		"elsewhere":      {&ledger.Force{Rule: AfterUnreachable, Node: "well"}, nil, nil, 10 * time.Minute, false},
		"taken by it":    {ran, []ledger.Fence{{Node: "dead", Rule: AfterUnreachable}}, nil, 10 * time.Minute, false},
		"without a time": {&ledger.Force{Rule: OutOfService, Node: "dead"}, nil, []ledger.Event{nodeAs("dead", outOfOrder)}, 0, false},
	} {
		facts := append([]ledger.Event{unreachableAfter(10 * time.Minute), ledger.Complete{}, madeAt("dead"), dataAt("q", "dead", ledger.PodLive)}, test.facts...)
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, facts...)
		p.now = auditTime.Add(test.after)
		h := ledger.Hold{Node: "dead", Fences: test.fences}
		p.keepClock(ledger.Hold{Force: test.force}, &h, p.at("dead"))
		if got := h.Force != nil; got != test.want || got && (h.Force.Rule != AfterUnreachable || h.Force.Elapsed != 10*time.Minute) {
			t.Errorf("%s: %+v", name, h.Force)
		}
	}
	p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{})
	h := ledger.Hold{Node: "dead"}
	if p.keepClock(ledger.Hold{Force: ran}, &h, nil); h.Force != nil {
		t.Errorf("nowhere: %+v", h.Force)
	}
}

// A volume is looked at again at each step of a rule's time, and when it is over.
func TestAwaits(t *testing.T) {
	for name, test := range map[string]struct {
		f    forcing
		want time.Duration // 0: never
	}{
		"no rule":          {forcing{}, 0},
		"over":             {forcing{Rule: AfterPodGone, Step: time.Minute}, 0},
		"it begins":        {forcing{Rule: AfterPodGone, Left: 6 * time.Minute, Step: time.Minute}, time.Minute},
		"within a step":    {forcing{Rule: AfterPodGone, Elapsed: 90 * time.Second, Left: 6 * time.Minute, Step: time.Minute}, 30 * time.Second},
		"the last step":    {forcing{Rule: AfterPodGone, Elapsed: 90 * time.Second, Left: 10 * time.Second, Step: time.Minute}, 10 * time.Second},
		"a step has begun": {forcing{Rule: AfterPodGone, Elapsed: 60 * time.Second, Left: 5 * time.Minute, Step: time.Minute}, time.Minute},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{})
		p.awaits(test.f)
		if got := p.plan.Recheck; got.IsZero() != (test.want == 0) || test.want != 0 && !got.Equal(auditTime.Add(test.want)) {
			t.Errorf("%s: at %s", name, got)
		}
	}
}

// To whom else a volume is committed: a ticket at a fenced node that has it or may get it,
// and to whom the hold promises it before the grant is written. Never to the request itself.
func TestCommittedElsewhere(t *testing.T) {
	next := ledger.Promise{Node: "dead", To: ledger.Requester{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}}
	asks := asksAt("m", ledger.TypeManual, "dead")
	granted := asksAt("m", ledger.TypeManual, "dead", grantedNow)
	for name, test := range map[string]struct {
		next  ledger.Promise
		who   string
		facts []ledger.Event
		at    ledger.NodeName
		lost  bool
	}{
		"nobody":                    {ledger.Promise{}, "r", nil, "", false},
		"promised":                  {next, "r", []ledger.Event{alive, asks}, "dead", false},
		"promised to itself":        {next, "m", []ledger.Event{alive, asks}, "", false},
		"promised to another there": {ledger.Promise{Node: "dead", To: ledger.Requester{UID: "o"}}, "r", []ledger.Event{alive, asks}, "", false},
		"promised, and granted":     {next, "r", []ledger.Event{alive, granted}, "", false},
		"granted at a fenced node":  {next, "r", []ledger.Event{granted, nodeAs("dead", outOfOrder)}, "dead", true},
		"promised at a fenced node": {next, "r", []ledger.Event{asks, nodeAs("dead", outOfOrder)}, "dead", true},
		"asks at a fenced node":     {ledger.Promise{}, "r", []ledger.Event{asks, nodeAs("dead", outOfOrder)}, "", false},
		"a pod at a fenced node":    {ledger.Promise{}, "r", []ledger.Event{dataAt("q", "dead", ledger.PodLive), nodeAs("dead", outOfOrder)}, "", false},
		"itself at a fenced node":   {next, "m", []ledger.Event{granted, nodeAs("dead", outOfOrder)}, "", false},
		"promised here":             {ledger.Promise{Node: "well", To: next.To}, "r", []ledger.Event{alive, asksAt("m", ledger.TypeManual, "well")}, "", false},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Next: test.next}, test.facts...)
		who, at, lost := p.committedElsewhere(Request{Who: ledger.Requester{UID: test.who}}, "well")
		if at != test.at || lost != test.lost || (who.UID == "m") != (at != "") {
			t.Errorf("%s: to %+v at %q (%t)", name, who, at, lost)
		}
	}
}

// To whom a slot is free that only tickets keep which are not granted.
func TestDeparture(t *testing.T) {
	young := func(k *ledger.Ticket) { k.Created = 9 }
	old := func(k *ledger.Ticket) { k.Created = 1 }
	refusedNow := func(k *ledger.Ticket) { k.Phase = ledger.TicketRefused }
	doubted := ledger.TicketInDoubt{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "m"}
	pod := func(k *ledger.Ticket) { k.Pod = k.ID.Name }
	for name, test := range map[string]struct {
		facts  []ledger.Event
		before bool // free to who ranks between the old and the young
		last   bool // free to who ranks last
		first  bool // free to who ranks first
	}{
		"nobody":              {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, refusedNow)}, true, true, true},
		"a young one asks":    {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, young)}, true, false, true},
		"an old one asks":     {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, old)}, false, false, true},
		"both ask":            {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, young), asksAt("o", ledger.TypePod, "well", pod, old)}, false, false, true},
		"the old one refused": {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, young), asksAt("o", ledger.TypePod, "well", pod, old, refusedNow)}, true, false, true},
		"it is granted":       {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, young, grantedNow)}, false, false, false},
		"it may be granted":   {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, young), doubted}, false, false, false},
		"a pod lives":         {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, young), dataAt("q", "well", ledger.PodLive)}, false, false, false},
		"a pod leaves":        {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, young), dataAt("q", "well", ledger.PodTerminating)}, false, false, false},
		"it is attached":      {[]ledger.Event{asksAt("m", ledger.TypePod, "well", pod, young), madeAt("well")}, false, false, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, test.facts...)
		place := p.at("well")
		if place == nil {
			place = &ledger.NodeVolume{Node: "well", Users: []ledger.User{{Ticket: ledger.TicketID{Namespace: "shop", Name: "m"}}}}
		}
		d := Arbiter{}.Queue(p.snapshot, "well", auditTime).departure(place)
		for created, want := range map[int64]bool{0: test.first, 5: test.before, 99: test.last} {
			if got := d.freeTo(Request{Type: ledger.TypePod, Created: created, Who: ledger.Requester{UID: "r"}}); got != want {
				t.Errorf("%s: free to who was created at %d: %t", name, created, got)
			}
		}
	}
}

// A need is for as many nodes as its claim says.
func TestAccessOfANeed(t *testing.T) {
	for name, test := range map[string]struct {
		need Need
		want []ledger.Access
	}{
		"the claim's":     {Need{Claim: &ledger.Claim{Access: ledger.AccessPod}, Access: ledger.AccessMany}, []ledger.Access{ledger.AccessPod}},
		"its own":         {Need{Access: ledger.AccessMany}, []ledger.Access{ledger.AccessMany}},
		"it needs none":   {Need{Link: ledger.LinkNone, Access: ledger.AccessMany}, nil},
		"it lies outside": {Need{Link: ledger.LinkOutside}, nil},
	} {
		var r Request
		r.need(test.need)
		if len(r.Needs) != len(test.want) || len(r.Needs) > 0 && r.Needs[0].Access != test.want[0] {
			t.Errorf("%s: %+v", name, r.Needs)
		}
	}
}

// A node that is new, or gone, may fit now; one whose Lease nobody has read says nothing of
// an outage only while it is there.
func TestNodesComeAndGo(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{})
	more := plannerOf(t, Arbiter{}, "", ledger.Hold{}, nodeAs("third"))
	if !Eased(p.snapshot, more.snapshot, Request{}, "third") || !Eased(more.snapshot, p.snapshot, Request{}, "third") || Eased(p.snapshot, p.snapshot, Request{}, "third") {
		t.Error("a node that comes or goes eases nothing, or nothing does")
	}
	for name, test := range map[string]struct {
		n    *ledger.Node
		want bool
	}{
		"nobody":   {nil, false},
		"gone":     {&ledger.Node{}, false},
		"not read": {&ledger.Node{Exists: true}, true},
		"read":     {&ledger.Node{Exists: true, RenewedAt: auditTime}, false},
	} {
		if got := leaseUnread(test.n); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Of two rules' times the later counts, and never is later than all.
func TestLonger(t *testing.T) {
	for _, test := range []struct{ a, b, want time.Duration }{
		{1, 2, 2}, {2, 1, 2}, {0, 0, 0}, {never, 1, never}, {1, never, never}, {never, never, never}, {0, never, never}, {-5, 0, never},
	} {
		if got := longer(test.a, test.b); got != test.want {
			t.Errorf("%d and %d: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
