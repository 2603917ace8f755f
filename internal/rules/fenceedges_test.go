// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A fence from before the Lease's first read gets it later, in the same outage.
func TestFenceGetsItsLease(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	fence := ledger.Fence{Node: "dead", NodeUID: "x", Attachment: "a", Rule: OutOfService, Since: 40}
	of := func(change func(*ledger.Fence)) ledger.Fence {
		f := fence
		change(&f)
		return f
	}
	for name, test := range map[string]struct {
		old           ledger.Fence
		tainted, read bool
		gone          bool
		want          int64
	}{
		"read now":               {fence, true, true, false, 7},
		"not read yet":           {fence, true, false, false, 0},
		"no rule is over":        {fence, false, true, false, 0},
		"the Node is gone":       {fence, true, true, true, 0},
		"without a rule":         {of(func(f *ledger.Fence) { f.Rule = "" }), true, true, false, 0},
		"read before":            {of(func(f *ledger.Fence) { f.Renewed = 5 }), true, true, false, 5},
		"of another Node":        {of(func(f *ledger.Fence) { f.NodeUID = "y" }), true, true, false, 0},
		"of an outage before it": {of(func(f *ledger.Fence) { f.Since = 39 }), true, true, false, 0},
	} {
		s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyUnknown, ReadySince: 40, OutOfService: test.tainted, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}})
			if test.read {
				l.Apply(auditTime, ledger.NodeLease{Node: "dead", Renewed: 7})
			}
			if test.gone {
				l.Apply(auditTime, ledger.NodeGone{Name: "dead"})
			}
		})
		v := s.Volume(id)
		want := test.old
		want.Renewed = test.want
		place := v.OnNode("dead")
		if place == nil {
			place = &ledger.VolumeOnNode{Node: "dead"}
		}
		if got := (Arbiter{}).planner(s, v, auditTime).withLease(test.old, s.Node("dead"), place); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	s, v, _ := concerned(t, "", "", ledger.Hold{})
	if got := (Arbiter{}).planner(s, v, auditTime).withLease(fence, nil, v.OnNode("dead")); got != fence {
		t.Errorf("of a node that nobody knows: %+v", got)
	}
}

func TestFenceBeforeANewAttachment(t *testing.T) {
	for name, test := range map[string]struct {
		fences []ledger.Fence
		left   bool
		want   bool
	}{
		"none":                       {nil, false, true},
		"by a rule":                  {[]ledger.Fence{{Node: "well", Rule: OutOfService}}, false, false},
		"by a rule that has ended":   {[]ledger.Fence{{Node: "well"}}, false, true},
		"by a rule, and left there":  {[]ledger.Fence{{Node: "well", Rule: OutOfService}}, true, false},
		"by none any more, and left": {[]ledger.Fence{{Node: "well"}}, true, true},
		"at another node":            {[]ledger.Fence{{Node: "dead", Rule: OutOfService}}, false, true},
	} {
		s, v, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld, Transitions: 1, Stays: test.left, Fences: test.fences}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		})
		p := Arbiter{}.planner(s, v, auditTime)
		p.hold = *v.Hold
		if got := p.mayCreate(s.Node("well"), v.OnNode("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The first living user at another unfenced node.
func TestBest(t *testing.T) {
	old := ledger.Pod{UID: "old", Version: "1", Namespace: "shop", Name: "old", Node: "well", Created: 1, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	young := ledger.Pod{UID: "young", Version: "1", Namespace: "shop", Name: "young", Node: "dead", Created: 2, Volumes: old.Volumes}
	for name, test := range map[string]struct {
		not   ledger.NodeName
		oos   bool
		facts []ledger.Event
		who   string
		at    ledger.NodeName
	}{
		"nobody":                     {"", false, nil, "", ""},
		"who is older":               {"", false, []ledger.Event{young, old}, "old", "well"},
		"at another node":            {"well", false, []ledger.Event{young, old}, "young", "dead"},
		"nobody at another node":     {"well", false, []ledger.Event{old}, "", ""},
		"the older is at the holder": {"dead", false, []ledger.Event{young, old}, "old", "well"},
		"the other node is fenced":   {"well", true, []ledger.Event{young, old}, "", ""},
		"needs no attachment":        {"", false, []ledger.Event{young, old, ledger.Driver{Name: "d", Version: "1"}}, "", ""},
	} {
		s, v, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: test.oos, Managed: true, Reporting: true})
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		who, at := Arbiter{}.planner(s, v, auditTime).best(test.not)
		if who.Pod != test.who || at != test.at {
			t.Errorf("%s: %q at %q, want %q at %q", name, who.Pod, at, test.who, test.at)
		}
	}
}

func TestSuperseded(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	k := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "m", Version: "1", Type: ledger.TypeManual, Node: "well", Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	other := ledger.Pod{UID: "other", Version: "1", Namespace: "shop", Name: "other", Node: "dead", Created: 1, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	next := ledger.Promise{Node: "dead", To: ledger.Requester{Namespace: "shop", Name: "other", UID: "other"}}
	at := func(n ledger.NodeName) ledger.Event {
		return ledger.Attachment{Name: ledger.AttachmentName(id, n), UID: "a" + string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Ours: true, Attached: true}
	}
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		next   ledger.Promise
		facts  []ledger.Event
		node   ledger.NodeName // its new node; empty: none
		who    string
	}{
		"held here":                       {"well", ledger.Promise{}, nil, "", ""},
		"held elsewhere":                  {"dead", ledger.Promise{}, []ledger.Event{other, at("dead")}, "dead", "other"},
		"elsewhere, promised here":        {"dead", ledger.Promise{Node: "well", To: ledger.Requester{Ticket: true, UID: "m"}}, []ledger.Event{other, at("dead")}, "", ""},
		"here, and promised elsewhere":    {"well", next, []ledger.Event{other, at("well")}, "", ""},
		"elsewhere, where nobody is":      {"dead", ledger.Promise{}, []ledger.Event{ledger.NodeState{Name: "dead", UID: "x", Version: "3", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}}, "", ""},
		"held nowhere":                    {"", ledger.Promise{}, []ledger.Event{other, at("dead")}, "", ""},
		"elsewhere, needs no attachment":  {"dead", ledger.Promise{}, []ledger.Event{other, at("dead"), ledger.Driver{Name: "d", Version: "1"}}, "", ""},
		"elsewhere, and it is shared":     {"dead", ledger.Promise{}, []ledger.Event{other, at("dead"), ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}}, "", ""},
		"elsewhere, and promised to more": {"dead", ledger.Promise{Node: "third", To: ledger.Requester{Namespace: "shop", Name: "x", UID: "x"}}, []ledger.Event{other, at("dead")}, "third", "x"},
	} {
		s, _, _ := concerned(t, "", test.heldAt, ledger.Hold{State: ledger.HoldHeld, Transitions: 1, Next: test.next}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
			l.Apply(auditTime, k)
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		v := s.Volume(id)
		got := Arbiter{}.planner(s, v, auditTime).superseded(s.Ticket(k.ID), "data")
		switch {
		case test.node == "" && len(got) == 0:
		case len(got) != 1 || got[0].Code != Outranked || got[0].Node != test.node || got[0].Who.UID != test.who:
			t.Errorf("%s: %+v, want to %q at %q", name, got, test.who, test.node)
		}
	}
}

// A text that names the code stays unchanged.
func TestSaid(t *testing.T) {
	for _, test := range []struct {
		code   int32
		detail string
		want   string
	}{
		{0, "no", "no"},
		{1, "no", "no (Canceled)"},
		{13, "no", "no (Internal)"},
		{13, "rpc error: code = Internal desc = no", "rpc error: code = Internal desc = no"},
		{16, "no", "no (Unauthenticated)"},
		{17, "no", "no"},
		{-1, "no", "no"},
	} {
		if got := (Reason{GRPC: test.code, Detail: test.detail}).said(); got != test.want {
			t.Errorf("code %d, %q: %q", test.code, test.detail, got)
		}
	}
}

func TestAwaitFence(t *testing.T) {
	s, v, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
		after := 10 * time.Minute
		l.Apply(auditTime, ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: &after})
		l.Apply(auditTime, ledger.NodeState{Name: "well", UID: "w", Version: "2", Ready: ledger.ReadyUnknown, Managed: true, Reporting: true})
	})
	p := Arbiter{}.planner(s, v, auditTime)
	if p.awaitFence(v.OnNode("well")); !p.plan.Recheck.Equal(auditTime.Add(10 * time.Minute)) {
		t.Errorf("looked at again at %s, want when the node is fenced by time", p.plan.Recheck)
	}
}
