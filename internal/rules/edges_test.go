// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestSecondsLeft(t *testing.T) {
	for _, test := range []struct {
		forcing forcing
		want    int64
	}{
		{forcing{}, 0},
		{forcing{Left: time.Minute, Step: time.Second}, 0},
		{forcing{Rule: AfterPodGone, Left: 0, Step: time.Minute}, 0},
		{forcing{Rule: AfterPodGone, Left: -1, Step: time.Minute}, 0},
		{forcing{Rule: AfterPodGone, Left: time.Minute, Step: time.Second - 1}, 0},
		{forcing{Rule: AfterPodGone, Left: 5 * time.Second, Step: time.Second}, 5},
		{forcing{Rule: AfterPodGone, Left: 5*time.Second + 1, Step: time.Second}, 6},
		{forcing{Rule: AfterPodGone, Left: 61 * time.Second, Step: time.Minute}, 120},
		{forcing{Rule: AfterPodGone, Left: time.Minute, Step: time.Minute}, 60},
		{forcing{Rule: AfterPodGone, Left: 5 * time.Second, Step: 30 * time.Second, Limit: 5 * time.Second}, 5},
		{forcing{Rule: AfterPodGone, Left: 31 * time.Second, Step: 30 * time.Second, Limit: 50 * time.Second}, 50},
		{forcing{Rule: AfterPodGone, Left: time.Second, Step: 30 * time.Second, Limit: time.Millisecond}, 1},
	} {
		if got := secondsLeft(test.forcing); got != test.want {
			t.Errorf("%+v: %d, want %d", test.forcing, got, test.want)
		}
	}
}

// The reason says that no time will ever force an unused volume off.
func TestUntilForced(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	after := func(d time.Duration) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterPodGone: &d})
		}
	}
	byDefault := func(*ledger.Ledger) {}
	for name, test := range map[string]struct {
		podAt  ledger.NodeName
		policy func(*ledger.Ledger)
		f      forcing
		want   int64
	}{
		"never":                     {"well", after(never), forcing{}, noTimeForces},
		"never, and somebody is up": {"dead", after(never), forcing{}, 0},
		"never, but for the taint":  {"well", after(never), forcing{Rule: OutOfService, Left: time.Second, Step: time.Second}, 1},
		"at once":                   {"well", after(0), forcing{}, 0},
		"in a while":                {"well", after(time.Minute), forcing{}, 0},
		"by default":                {"well", byDefault, forcing{}, 0},
	} {
		s, v, _ := concerned(t, test.podAt, "dead", ledger.Hold{State: ledger.HoldHeld}, test.policy)
		if got := untilForced(s, v, s.Volume(id).OnNode("dead"), test.f); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// A leaving user still uses the volume.
func TestStandings(t *testing.T) {
	l := ledger.New()
	see := func(e ledger.Event) { l.Apply(auditTime, e) }
	see(ledger.NodeState{Name: "n", UID: "n", Version: "1"})
	see(ledger.Pod{UID: "nowhere", Version: "1", Namespace: "s", Node: "never", Phase: ledger.PodLive})
	see(ledger.Pod{UID: "live", Version: "1", Namespace: "s", Node: "n", Phase: ledger.PodLive})
	see(ledger.Pod{UID: "finished", Version: "1", Namespace: "s", Node: "n", Phase: ledger.PodFinished})
	see(ledger.Pod{UID: "leaving", Version: "1", Namespace: "s", Node: "n", Phase: ledger.PodTerminating})
	id := func(name string) ledger.TicketID { return ledger.TicketID{Namespace: "s", Name: name} }
	for name, phase := range map[string]ledger.TicketPhase{"asks": ledger.TicketPending, "granted": ledger.TicketGranted} {
		see(ledger.Ticket{ID: id(name), UID: name, Version: "1", Type: ledger.TypeManual, Node: "n", Phase: phase})
	}
	s := l.Snapshot()
	for name, want := range map[string]claimState{"live": active, "finished": noClaim, "leaving": terminating, "nowhere": terminating, "nobody": noClaim} {
		if got := claimStateOf(s, ledger.User{Pod: name}); got != want {
			t.Errorf("pod %s: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]claimState{"asks": requested, "granted": active, "nobody": noClaim} {
		if got := claimStateOf(s, ledger.User{Ticket: id(name)}); got != want {
			t.Errorf("ticket %s: %d, want %d", name, got, want)
		}
	}
	d := &ledger.Delta{Granted: id("asks")}
	d.Remove("live")
	s = s.With(d)
	for name, want := range map[string]claimState{"asks": active, "granted": active} {
		if got := claimStateOf(s, ledger.User{Ticket: id(name)}); got != want {
			t.Errorf("in a dry run, ticket %s: %d, want %d", name, got, want)
		}
	}
	if got := claimStateOf(s, ledger.User{Pod: "live"}); got != noClaim {
		t.Errorf("a pod that a dry run takes away: %d", got)
	}
}

func TestExplainWhatIsNotKnown(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	s, _, need := concerned(t, "well", "well", ledger.Hold{}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.HoldGone{Volume: id})
		l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	})
	if s.Volume(id).Hold != nil {
		t.Fatal("there is a hold")
	}
	if _, found := (Arbiter{}).Concern(s, s.Volume(id), auditTime); found {
		t.Error("a volume without a hold has a concern")
	}
	if r := (Arbiter{}).Explain(s, need, "well", auditTime).First(); r.Code != Attaching {
		t.Errorf("without a hold: %s", r.Code)
	}
	if got := unreported(nil); got != NodeMissing {
		t.Errorf("at a node that nobody knows: %s", got)
	}
	for want, n := range map[ledger.Code]ledger.Node{
		NodeMissing:   {NodeState: ledger.NodeState{Managed: true}},
		NodeUnmanaged: {Exists: true},
		NotReported:   {Exists: true, NodeState: ledger.NodeState{Managed: true}},
	} {
		if got := unreported(&n); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestReplaced(t *testing.T) {
	va := &ledger.Attachment{Driver: "d", NodeID: "i-1"}
	at := func(id string, registered bool) *ledger.Node {
		return &ledger.Node{Drivers: []ledger.NodeDriver{{DriverOnNode: ledger.DriverOnNode{Name: "d", NodeID: id}, Registered: registered}}}
	}
	for name, test := range map[string]struct {
		n    *ledger.Node
		va   *ledger.Attachment
		want bool
	}{
		"another machine":             {at("i-2", true), va, true},
		"the same":                    {at("i-1", true), va, false},
		"it does not say":             {at("", true), va, false},
		"it was, and is not any more": {at("i-2", false), va, false},
		"no driver":                   {&ledger.Node{}, va, false},
		"no node":                     {nil, va, false},
		"no attachment":               {at("i-2", true), nil, false},
		"not published":               {at("i-2", true), &ledger.Attachment{Driver: "d"}, false},
	} {
		if got := replaced(test.n, test.va); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestGrantees(t *testing.T) {
	id := func(name string) ledger.TicketID { return ledger.TicketID{Namespace: "shop", Name: name} }
	named := ledger.Requester{Ticket: true, Namespace: "shop", Name: "named", UID: "named"}
	s, v, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld, Requesters: []ledger.Requester{named}}, func(l *ledger.Ledger) {
		for name, phase := range map[string]ledger.TicketPhase{"named": ledger.TicketPending, "asks": ledger.TicketPending, "granted": ledger.TicketGranted} {
			l.Apply(auditTime, ledger.Ticket{ID: id(name), UID: name, Version: "1", Type: ledger.TypeManual, Node: "well", Phase: phase, Volumes: []ledger.TicketVolume{{Claim: "data"}}})
		}
	})
	p := Arbiter{}.planner(s, v, auditTime)
	for name, want := range map[string]bool{"named": false, "asks": false, "granted": true, "nobody": false} {
		if got := p.isGrantee(ledger.User{Ticket: id(name)}); got != want {
			t.Errorf("ticket %s is a grantee: %t", name, got)
		}
	}
	if p.isGrantee(ledger.User{Pod: "p"}) {
		t.Error("a pod is a grantee")
	}
}

func TestInhabited(t *testing.T) {
	for phase, want := range map[ledger.PodPhase]bool{ledger.PodLive: true, ledger.PodTerminating: true, ledger.PodFinished: false} {
		s, v, _ := concerned(t, "", "well", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "well", Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
		})
		place := &ledger.VolumeOnNode{Node: "well", Users: []ledger.User{{Pod: "p"}}}
		if got := (Arbiter{}).planner(s, v, auditTime).inhabited(place); got != want {
			t.Errorf("phase %d: %t", phase, got)
		}
	}
}

// In Cooperative mode Moorage manages a volume with an own attachment, a creation in flight, a failed
// detach, or an opted-in user.
func TestAdopted(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	out := func(n ledger.NodeName) ledger.Pod {
		return ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: n, OptedOut: true, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	}
	attachment := func(ours bool) ledger.Attachment {
		return ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: ours, Attached: true}
	}
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   bool
	}{
		"somebody who has opted out":            {"", ledger.Hold{}, []ledger.Event{out("well")}, false},
		"the same, and a hold":                  {"well", ledger.Hold{State: ledger.HoldHeld}, []ledger.Event{out("well")}, false},
		"the same, and another's attachment":    {"", ledger.Hold{}, []ledger.Event{out("well"), attachment(false)}, false},
		"the same, and an own attachment":       {"", ledger.Hold{}, []ledger.Event{out("well"), attachment(true)}, true},
		"the same, and a creation is under way": {"", ledger.Hold{}, []ledger.Event{out("well"), ledger.AttachSent{Volume: id, Node: "well"}}, true},
		"the same, and what was left":           {"dead", ledger.Hold{State: ledger.HoldUnknown, Stays: true}, []ledger.Event{out("well")}, true},
		"nobody, and a hold":                    {"well", ledger.Hold{State: ledger.HoldHeld}, []ledger.Event{ledger.PodGone{UID: "p"}}, true},
		"nobody, and a hold that names no node": {"", ledger.Hold{State: ledger.HoldFree}, []ledger.Event{ledger.PodGone{UID: "p"}}, false},
		"somebody who has opted in":             {"", ledger.Hold{}, nil, true},
	} {
		s, v, _ := concerned(t, "well", test.heldAt, test.hold, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		if got := (Arbiter{Cooperative: true}).planner(s, v, auditTime).adopted(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		if !(Arbiter{}).planner(s, v, auditTime).adopted() {
			t.Errorf("%s: not Moorage's in Standalone mode", name)
		}
	}
}
