// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A promise stands while the grant by which it was made may be on its way, also where somebody has the
// volume again whose node was fenced then. It ends when the ticket is told that it gives way, or is gone.
func TestPromiseOfAGrantUnderWay(t *testing.T) {
	next := ledger.Promise{Node: "dead", To: ledger.Requester{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}}
	lives := dataAt("q", "well", ledger.PodLive)
	told := func(k *ledger.Ticket) { k.Reason = string(Outranked) }
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"it may be granted":     {[]ledger.Event{alive, lives, asksAt("m", ledger.TypeManual, "dead")}, true},
		"it is told":            {[]ledger.Event{alive, lives, asksAt("m", ledger.TypeManual, "dead", told)}, false},
		"it is gone":            {[]ledger.Event{alive, lives}, false},
		"somebody else asks":    {[]ledger.Event{alive, lives, asksAt("o", ledger.TypeManual, "dead")}, false},
		"nobody has the volume": {[]ledger.Event{alive, asksAt("m", ledger.TypeManual, "dead")}, true},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Next: next}, append(test.facts, madeAt("well"))...)
		h := p.nextHold(hold(p.volume))
		if got := h.Next == next; h.Node != "well" || got != test.want {
			t.Errorf("%s: held at %s, next %+v", name, h.Node, h.Next)
		}
	}
}

// While a ticket asks for a shared volume to be detached, a grant of it at a node writes its hold, which
// names who is granted; nobody else's grant does.
func TestSharedGrantWritesTheHold(t *testing.T) {
	detached := asksAt("d", ledger.TypeBackup, ledger.Detached)
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  int
	}{
		"nobody asks for that": {nil, 0},
		"a ticket asks for it": {[]ledger.Event{detached}, 1},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree, Grants: 7}, append(test.facts, sharedDisk, asksAt("m", ledger.TypeRestore, "well"))...)
		verdict, steps := p.Grant(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime)
		if !verdict.Allowed() || len(steps) != test.want {
			t.Fatalf("%s: %v, %d holds", name, verdict, len(steps))
		}
		if test.want == 0 {
			continue
		}
		if h := steps[0].Hold; h.Grants != 8 || h.Node != "" || h.Next.Node != "well" || h.Next.To.UID != "m" || steps[0].Expect != h.Version {
			t.Errorf("%s: writes %+v", name, steps[0])
		}
	}
}

// A ticket is not granted a shared volume detached while the hold names somebody whose grant at a node
// may be on its way: it waits until that is known.
func TestDetachedWaitsForGrantsUnderWay(t *testing.T) {
	named := ledger.Hold{Next: ledger.Promise{Node: "well", To: ledger.Requester{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}}}
	told := func(k *ledger.Ticket) { k.Reason = string(Outranked) }
	for name, test := range map[string]struct {
		written ledger.Hold
		other   ledger.Event
		want    bool
	}{
		"under way":      {named, asksAt("m", ledger.TypeManual, "well"), false},
		"not named":      {ledger.Hold{State: ledger.HoldFree}, asksAt("m", ledger.TypeManual, "well"), true},
		"told since":     {named, asksAt("m", ledger.TypeManual, "well", told), true},
		"gone":           {named, sharedDisk, true},
		"one of its own": {named, asksAt("m", ledger.TypeManual, ledger.Detached), true},
	} {
		p := plannerOf(t, Arbiter{}, "", test.written, sharedDisk, test.other, asksAt("d", ledger.TypeUpgrade, ledger.Detached))
		verdict, _ := p.Grant(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "d"}), auditTime)
		if verdict.Allowed() != test.want || !test.want && verdict.First().Code != HeldElsewhere && verdict.First().Code != NotGranted {
			t.Errorf("%s: %v", name, verdict)
		}
	}
}

// The hold of such a grant goes when no ticket asks for the volume to be detached any more, and not
// before: a grant may be on its way that is to fail on it. What else a hold has to say stays.
func TestHoldOfASharedGrantGoes(t *testing.T) {
	detached := asksAt("d", ledger.TypeBackup, ledger.Detached)
	for name, test := range map[string]struct {
		written ledger.Hold
		facts   []ledger.Event
		want    bool
	}{
		"nobody asks":      {ledger.Hold{State: ledger.HoldFree, Grants: 1}, nil, true},
		"a ticket asks":    {ledger.Hold{State: ledger.HoldFree, Grants: 1}, []ledger.Event{detached}, false},
		"never granted by": {ledger.Hold{State: ledger.HoldFree}, nil, false},
		"it was exclusive": {ledger.Hold{State: ledger.HoldFree, Grants: 1, Transitions: 2}, nil, false},
		"it was, promised": {ledger.Hold{State: ledger.HoldFree, Transitions: 1, Grants: 1, Next: ledger.Promise{Node: "well", To: ledger.Requester{UID: "m"}}}, nil, false},
	} {
		p := plannerOf(t, Arbiter{}, "", test.written, append(test.facts, sharedDisk, alive)...)
		p.decideHold()
		if got := len(p.plan.Steps) == 1 && p.plan.Steps[0].Do == DeleteHold; got != test.want {
			t.Errorf("%s: plans %+v", name, p.plan.Steps)
		}
	}
}

// A pod is not bound without a ticket where one asks for its shared volume to be detached: that one's
// grant would not see it.
func TestNoBindAtOnceBesideDetached(t *testing.T) {
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"nobody asks":   {nil, true},
		"a ticket asks": {[]ledger.Event{asksAt("d", ledger.TypeBackup, ledger.Detached)}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append(test.facts, sharedDisk)...)
		pod := dataAt("q", "", ledger.PodLive).(ledger.Pod)
		if got := p.Uncontended(p.snapshot, &pod, "well"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
