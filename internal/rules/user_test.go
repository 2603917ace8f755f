// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestUsersThatAreGone(t *testing.T) {
	l := ledger.New()
	l.Apply(auditTime, ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "db", Created: 7})
	l.Apply(auditTime, ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "r"}, UID: "t1", Version: "1", Type: ledger.TypeManual, Created: 5})
	l.Apply(auditTime, ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "m"}, UID: "t2", Version: "1", Type: ledger.TypeManual})
	s := l.Snapshot()
	for name, test := range map[string]struct {
		user    ledger.User
		who     ledger.Requester
		created int64
		kind    ledger.TicketType
	}{
		"a pod":                 {ledger.User{Pod: "p"}, ledger.Requester{Namespace: "s", Name: "db", UID: "p"}, 7, ""},
		"a pod that is gone":    {ledger.User{Pod: "x"}, ledger.Requester{UID: "x"}, 0, ""},
		"a person's ticket":     {ledger.User{Ticket: ledger.TicketID{Namespace: "s", Name: "m"}}, ledger.Requester{Ticket: true, Namespace: "s", Name: "m", UID: "t2"}, 0, ledger.TypeManual},
		"a ticket that is gone": {ledger.User{Ticket: ledger.TicketID{Namespace: "s", Name: "x"}}, ledger.Requester{Ticket: true, Namespace: "s", Name: "x"}, 0, "gone"},
	} {
		if got := requester(s, test.user); got != test.who {
			t.Errorf("%s is named %+v, want %+v", name, got, test.who)
		}
		if got := requestOf(s, test.user); got.Created != test.created || got.Type != test.kind {
			t.Errorf("%s ranks as %s of %d, want %s of %d", name, got.Type, got.Created, test.kind, test.created)
		}
	}
	pod := s.Pod("p")
	if r := PodRequest(s, pod); r.Type != "" || r.Pod != "p" || r.Ticket != (ledger.TicketID{}) {
		t.Errorf("a pod asks as %+v", r)
	}
}

// A hold is not written only to add a boot.
func TestHoldNamesTheBoot(t *testing.T) {
	hold := func(boot string) ledger.Hold { return ledger.Hold{Node: "n1", NodeUID: "u", BootID: boot} }
	for _, test := range []struct {
		was, is string
		same    bool
	}{{"a", "a", true}, {"a", "b", false}, {"", "b", true}, {"a", "", false}} {
		if got := sameHold(hold(test.was), hold(test.is)); got != test.same {
			t.Errorf("boot %q and %q say the same: %t", test.was, test.is, got)
		}
	}
}

// A detach occupies a worker until its answer, or for a minute.
func TestWhatIsUnderWay(t *testing.T) {
	l := ledger.New()
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	version := 0
	see := func(at time.Time, change func(*ledger.Attachment)) (bool, time.Duration) {
		version++
		a := ledger.Attachment{Name: ledger.AttachmentName(id, "n1"), UID: "a", Version: string(rune('0' + version)), Driver: "d", Node: "n1", Inline: id}
		change(&a)
		l.Apply(auditTime, a)
		return UnderWay(l.Snapshot(), l.Snapshot().Volume(id).OnNode("n1"), at)
	}
	failed := ledger.CallError{Code: 13, Message: "busy"}
	for i, test := range []struct {
		after  time.Duration
		change func(*ledger.Attachment)
		want   bool
		left   time.Duration
	}{
		{0, func(a *ledger.Attachment) {}, true, 0},
		{0, func(a *ledger.Attachment) { a.AttachError = failed }, false, 0},
		{0, func(a *ledger.Attachment) { a.Attached = true }, false, 0},
		{0, func(a *ledger.Attachment) { a.Attached, a.Deleting = true, true }, true, time.Minute},
		{59 * time.Second, func(a *ledger.Attachment) { a.Attached, a.Deleting = true, true }, true, time.Second},
		{time.Minute, func(a *ledger.Attachment) { a.Attached, a.Deleting = true, true }, false, 0},
		{2 * time.Minute, func(a *ledger.Attachment) { a.Attached, a.Deleting = true, true }, false, 0},
		{0, func(a *ledger.Attachment) { a.Attached, a.Deleting, a.DetachError = true, true, failed }, false, time.Minute},
	} {
		if got, left := see(auditTime.Add(test.after), test.change); got != test.want || left != test.left {
			t.Errorf("%d: under way: %t, for %s; want %t, %s", i, got, left, test.want, test.left)
		}
	}
	if got, left := UnderWay(l.Snapshot(), nil, auditTime); got || left != 0 {
		t.Error("nothing is under way where nothing is")
	}
}

// In Cooperative mode attached is enough: the attach/detach controller reports only for bound pods.
func TestSatisfiedBesideAnother(t *testing.T) {
	s, _, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
		id := ledger.VolumeID{Driver: "d", Handle: "h"}
		l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true})
		l.Apply(auditTime, ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "t", Version: "1", Type: ledger.TypeManual, Node: "well", Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "data"}}})
	})
	k := s.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})
	if v := (Arbiter{Cooperative: true}).Satisfied(s, k, auditTime); !v.Allowed() {
		t.Errorf("beside another: %s", v.First().Code)
	}
	if v := (Arbiter{}).Satisfied(s, k, auditTime); v.First().Code != NotReported {
		t.Errorf("alone: %s %s", v.Outcome, v.First().Code)
	}
}

func TestHoldThatNobodyAdoptsGoes(t *testing.T) {
	l := ledger.New()
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	l.Apply(auditTime, ledger.HoldSeen{Volume: id, Hold: ledger.Hold{Version: "3", Transitions: 2, State: ledger.HoldFree}})
	for _, a := range []Arbiter{{Cooperative: true}, {}} {
		if steps := a.Plan(l.Snapshot(), id, auditTime).Steps; len(steps) != 1 || steps[0].Kind != DeleteHold || steps[0].Expect != "3" {
			t.Errorf("%+v: planned: %+v", a, steps)
		}
	}
}

// Force waits until the hold names the rule: an earlier rule stands for another proof.
func TestFenceNamesTheRule(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	plan := func(rule string) []Step {
		fence := ledger.Fence{Node: "dead", Attachment: "a", Rule: rule, NodeUID: "x", InUse: true}
		s, _, _ := concerned(t, "", "dead", ledger.Hold{State: ledger.HoldHeld, NodeUID: "x", Fences: []ledger.Fence{fence}}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}, Reported: []ledger.VolumeID{id}})
			l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "dead"), UID: "a", Version: "1", Driver: "d", Node: "dead", PersistentVolume: "pv", Attached: true, Ours: true})
		})
		return Arbiter{}.Plan(s, id, auditTime).Steps
	}
	for _, step := range plan(AfterPodGone) {
		if step.Kind == Unreport {
			t.Errorf("unreported by a rule that the hold does not name: %+v", step)
		}
		if step.Kind == WriteHold && (len(step.Hold.Fences) != 1 || step.Hold.Fences[0].Rule != OutOfService) {
			t.Errorf("the hold is to say %+v", step.Hold.Fences)
		}
	}
	unreported := false
	for _, step := range plan(OutOfService) {
		unreported = unreported || step.Kind == Unreport && step.Rule == OutOfService
	}
	if !unreported {
		t.Error("it is not unreported once the hold names the rule")
	}
}

func TestFenceSaysWhetherItWasInUse(t *testing.T) {
	place := &ledger.VolumeOnNode{Node: "n1"}
	used := &ledger.VolumeOnNode{Node: "n1", InUse: true}
	p := &holdPlan{planning{volume: &ledger.Volume{}}}
	reports := silentNode(func(n *ledger.Node) { n.Reporting = true })
	for i, test := range []struct {
		node  *ledger.Node
		place *ledger.VolumeOnNode
		want  bool
	}{{reports, place, false}, {reports, used, true}, {silentNode(func(*ledger.Node) {}), place, true}, {nil, place, true}} {
		if f := p.newFence(test.node, test.place, nil, AfterPodGone); f.InUse != test.want || f.Rule != AfterPodGone {
			t.Errorf("%d: %+v, want in use: %t", i, f, test.want)
		}
	}
}

func TestDryRunTakesSlots(t *testing.T) {
	l := ledger.New()
	l.Apply(auditTime, ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	l.Apply(auditTime, ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 2}}})
	for _, name := range []string{"a", "b", "c"} {
		l.Apply(auditTime, ledger.Pod{UID: name, Version: "1", Namespace: "s", Name: name, Volumes: []ledger.PodVolume{{Name: "v", Inline: ledger.VolumeID{Driver: "d", Handle: name}}}})
	}
	d := &ledger.Delta{}
	for i, tried := range []string{"a", "b"} {
		d.Add(tried, "n1")
		s := l.Snapshot().With(d)
		if v := (Arbiter{}).Fit(s, PodRequest(s, s.Pod("c")), "n1", auditTime); v.Allowed() != (i == 0) {
			t.Errorf("beside %d that are tried: %s", i+1, v.Outcome)
		}
	}
}
