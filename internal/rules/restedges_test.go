// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A report must wait while the volume may be attached to the name's earlier machine.
func TestBarredFromAReport(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	another := nodeAs("well", ofMachine("z", "c"), func(n *ledger.NodeState) { n.SystemUUID, n.BootID, n.Version = "z", "c", "7" })
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"nothing is in its way":     {[]ledger.Event{again(), madeAt("well"), says(), lives}, true},
		"it is at another machine":  {[]ledger.Event{nodeAs("well", ofMachine("m", "b"), using), madeAt("well"), another, lives}, false},
		"nobody wants it any more":  {[]ledger.Event{again(), madeAt("well"), says()}, false},
		"it is listed as it should": {[]ledger.Event{again(reporting, func(n *ledger.NodeState) { n.Version = "8" }), madeAt("well"), says(), lives}, false},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		got := Arbiter{}.unreported(p.snapshot, p.volume, auditTime)
		if len(got) > 0 != test.want || test.want && (got[0].Invariant != "I4" || got[0].Volume != disk || got[0].Node != "well") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestLeftToDoAboutTickets(t *testing.T) {
	noticed := func(k *ledger.Ticket) { k.SatisfiedSince, k.YieldingSince = 900, 1000 }
	over := func(k *ledger.Ticket) { k.SatisfiedSince, k.YieldingSince = 900, 970 }
	gone := ledger.TicketGone{ID: ledger.TicketID{Namespace: "shop", Name: "m"}}
	lives := dataAt("o", "dead", ledger.PodLive)
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		facts  []ledger.Event
		want   []string
	}{
		"it has to yield":           {"well", []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow), lives}, []string{"I1"}},
		"it was asked to":           {"well", []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow, noticed), lives}, nil},
		"its time is over":          {"well", []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow, over), lives}, []string{"I1"}},
		"nobody wants it elsewhere": {"well", []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow)}, nil},
		"it asks":                   {"", []ledger.Event{asksAt("m", ledger.TypeManual, "well")}, []string{"I7"}},
		"it asked, and is gone":     {"", []ledger.Event{asksAt("m", ledger.TypeManual, "well"), gone}, nil},
	} {
		hold := ledger.Hold{Transitions: 1}
		if test.heldAt == "" {
			hold.State = ledger.HoldFree
		}
		p := plannerOf(t, Arbiter{}, test.heldAt, hold, append([]ledger.Event{alive}, test.facts...)...)
		var got []string
		for _, v := range (Arbiter{}).AuditAtRest(p.snapshot, auditTime) {
			if v.Ticket.Name == "m" {
				got = append(got, v.Invariant)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// An unmanaged volume's hold keeps possible older mounts, and drops everything that is over.
func TestLeaveWithFences(t *testing.T) {
	free := func(boot string) ledger.Hold {
		return ledger.Hold{State: ledger.HoldFree, Fences: []ledger.Fence{{Node: "dead", NodeUID: "x", BootID: boot, InUse: true}}}
	}
	booted := deadNode("3", "x", "b", func(*ledger.NodeState) {})
	for name, test := range map[string]struct {
		hold   ledger.Hold
		facts  []ledger.Event
		want   Kind
		fences int
	}{
		"it may be mounted there":    {free("b"), []ledger.Event{booted}, 0, 0},
		"the machine has booted":     {free("z"), []ledger.Event{booted}, WriteHold, 0},
		"shared, it may be mounted":  {free("b"), []ledger.Event{booted, sharedDisk}, WriteHold, 1},
		"shared, and it has booted":  {free("z"), []ledger.Event{booted, sharedDisk}, DeleteHold, 0},
		"nothing was said, nor held": {ledger.Hold{State: ledger.HoldFree}, []ledger.Event{booted}, 0, 0},
	} {
		p := plannerOf(t, Arbiter{Cooperative: true}, "", test.hold, test.facts...)
		p.leave()
		if got := only(p); got != test.want || got == WriteHold && len(p.plan.Steps[0].Hold.Fences) != test.fences {
			t.Errorf("%s: %+v", name, p.plan.Steps)
		}
	}
}

func TestOverdueWhileTheTimeIsHeld(t *testing.T) {
	policy := ledger.Policy{
		Name: "p", Version: "1", Driver: "d", AfterPodGone: new(never), AfterUnreachable: new(2 * time.Minute),
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"its time runs":     {nil, true},
		"a brake holds it":  {[]ledger.Event{nodeAs("third", silent), ledger.NodeState{Name: "fourth", UID: "f", Version: "1"}}, true},
		"the node is Ready": {[]ledger.Event{alive}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{sharedDisk, policy, madeAt("dead")}, test.facts...)...)
		if place := p.overdue(); (place != nil) != test.want || place != nil && place.Node != "dead" {
			t.Errorf("%s: %+v", name, place)
		}
	}
}

func TestNoMachineIsLetIn(t *testing.T) {
	since := func(n *ledger.NodeState) { n.Version, n.ReadySince = "8", 40 }
	for machine, want := range map[string]Unfencing{"": StaysFenced, "m": MayUnfence} {
		cut := CutMachine{Driver: "d", Node: "well", NodeUID: "w2", SystemUUID: machine, BootID: "b", Look: 1, LookSince: 40, LookWord: "word"}
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, again(ofMachine(machine, "b"), since), says(hasLooked))
		if got := MayUnfenceMachine(p.snapshot, cut, auditTime); got != want {
			t.Errorf("machine %q: %d, want %d", machine, got, want)
		}
	}
}

// The taint counts only on an existing Node that is not Ready.
func TestAbandonedNode(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ledger.Node)
		want   bool
	}{
		"it is":                  {func(*ledger.Node) {}, true},
		"its Node is gone":       {func(n *ledger.Node) { n.Exists = false }, false},
		"it has no such taint":   {func(n *ledger.Node) { n.OutOfService = false }, false},
		"it is Ready":            {func(n *ledger.Node) { n.Ready = ledger.ReadyTrue }, false},
		"it says it is not well": {func(n *ledger.Node) { n.Ready = ledger.ReadyFalse }, true},
	} {
		n := &ledger.Node{Exists: true, NodeState: ledger.NodeState{Ready: ledger.ReadyUnknown, OutOfService: true}}
		test.change(n)
		if got := abandoned(n); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if abandoned(nil) || (Arbiter{}).Abandoned(ledger.New().Snapshot(), "nowhere") != nil {
		t.Error("a node that nobody knows")
	}
}

func TestAlikeInLeaseAndLabels(t *testing.T) {
	for name, change := range map[string]func(*ledger.Node){
		"ReadAgain": func(n *ledger.Node) { n.ReadAgain = time.Unix(1, 0) }, "SELinuxMount": func(n *ledger.Node) { n.SELinuxMount = true },
		"CSINode": func(n *ledger.Node) { n.CSINode = true }, "Managed": func(n *ledger.Node) { n.Managed = true },
	} {
		a, b := &ledger.Node{}, &ledger.Node{}
		if change(b); alike(a, b) || alike(b, a) || !alike(b, b) {
			t.Errorf("nodes that differ in %s are alike", name)
		}
	}
}
