// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// reserved is the reservation of pod p at n1, as a leader takes it into its ledger.
func reserved(t *testing.T, p *player) ledger.Ticket {
	t.Helper()
	s := p.ledger.Snapshot()
	r, can := arbiter.Arbiter{}.BindAtOnce(s, s.Pod("uid-p"), "n1", p.now)
	if !can {
		t.Fatal("pod p can't be bound at once")
	}
	p.ledger.Apply(p.now, r)
	return r
}

// A bind names UID and version of the pod. The reservation ends for certain reasons only.
func TestBind(t *testing.T) {
	bound := pod("p", "n1", "a")
	bound.Version = "2"
	send := "bind-pod s/p n1 uid=uid-p version=1"
	for name, test := range map[string]struct {
		reply reply
		want  []string
		kept  ledger.BindState
	}{
		"bound":                      {replies(Done), []string{send, "finished"}, ledger.BindSent},
		"bound, and seen":            {replies(Done, bound), []string{send, "finished"}, ledger.NoBind},
		"the pod is gone":            {replies(NotFound), []string{send, "tell PodGone", "tell TicketReleased", "stale"}, ledger.NoBind},
		"somebody's rule refuses":    {replies(Refused), []string{send, "tell TicketReleased", "failed"}, ledger.NoBind},
		"it was not sent":            {replies(NotSent), []string{send, "tell TicketReleased", "failed"}, ledger.NoBind},
		"no answer":                  {replies(Unknown), []string{send, "tell BindLost", "failed"}, ledger.BindUnanswered},
		"no answer, but it is bound": {replies(Unknown, bound), []string{send, "tell BindLost", "failed"}, ledger.NoBind},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(pod("p", "", "a"))
			r := reserved(t, p)
			check(t, p.play(t, Bind(&r, "1"), test.reply), test.want...)
			kept := ledger.NoBind
			if now := p.ledger.Snapshot().Ticket(r.ID); now != nil {
				kept = now.Bind
			}
			if kept != test.kept {
				t.Errorf("the reservation is left in state %d, want %d", kept, test.kept)
			}
		})
	}
}

// A pod that is bound or gone before the bind is sent needs none.
func TestBindTooLate(t *testing.T) {
	p := newPlayer(pod("p", "", "a"))
	r := reserved(t, p)
	p.ledger.Apply(p.now, ledger.PodGone{UID: "uid-p"})
	check(t, p.play(t, Bind(&r, "1")), "stale")
}

// A bind that was not answered is settled by a fence: what comes later of it fails. Only one
// whose time is over may go without.
func TestSettle(t *testing.T) {
	unbound, bound := pod("p", "", "a"), pod("p", "n1", "a")
	unbound.Version, bound.Version = "4", "5"
	read, fence := "get pods s/p uid=uid-p", "fence-pod s/p uid=uid-p version=4"
	for name, test := range map[string]struct {
		replies []reply
		want    []string
		kept    bool
	}{
		"it is bound":            {[]reply{replies(Done, bound)}, []string{read, "finished"}, false},
		"it is gone":             {[]reply{replies(NotFound)}, []string{read, "tell PodGone", "tell TicketReleased", "finished"}, false},
		"it is fenced":           {[]reply{replies(Done, unbound), replies(Done)}, []string{read, fence, "tell TicketReleased", "finished"}, false},
		"it changes meanwhile":   {[]reply{replies(Done, unbound), replies(Conflict)}, []string{read, fence, "stale"}, true},
		"it goes meanwhile":      {[]reply{replies(Done, unbound), replies(NotFound)}, []string{read, fence, "tell PodGone", "tell TicketReleased", "finished"}, false},
		"no answer to the read":  {[]reply{replies(Unknown)}, []string{read, "failed"}, true},
		"no answer to the fence": {[]reply{replies(Done, unbound), replies(Unknown)}, []string{read, fence, "failed"}, true},
		"the fence was not sent": {[]reply{replies(Done, unbound), replies(NotSent)}, []string{read, fence, "failed"}, true},
		"somebody's rule refuses the fence": {[]reply{replies(Done, unbound), replies(Refused), replies(Done, unbound)},
			[]string{read, fence, "wait 20s", read, "tell TicketReleased", "finished"}, false},
		"bound after all, as the fence is refused": {[]reply{replies(Done, unbound), replies(Refused), replies(Done, bound)},
			[]string{read, fence, "wait 20s", read, "finished"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(pod("p", "", "a"))
			r := reserved(t, p)
			p.ledger.Apply(p.now, ledger.BindLost{ID: r.ID})
			task, due := Due(arbiter.Arbiter{}, p.ledger.Snapshot(), p.ledger.Snapshot().Ticket(r.ID), p.now)
			if !due {
				t.Fatal("nothing is due about a bind without an answer")
			}
			check(t, p.play(t, task, test.replies...), test.want...)
			if kept := p.ledger.Snapshot().Ticket(r.ID) != nil; kept != test.kept {
				t.Errorf("the reservation is kept: %v, want %v", kept, test.kept)
			}
		})
	}
}

// As long as a bind is under way nothing is done about it, and its pod gets no grant
// elsewhere.
func TestWhileABindIsUnderWay(t *testing.T) {
	p := newPlayer(pod("p", "", "a"), pod("q", "", "a", "b", "c"))
	r := reserved(t, p)
	s := p.ledger.Snapshot()
	if _, due := Due(arbiter.Arbiter{}, s, s.Ticket(r.ID), p.now); due {
		t.Error("a bind under way is settled")
	}
	for name, asks := range map[string]ledger.Ticket{
		"its own pod, at the same node": ticket("p", "n1", ledger.TypePod, "a"),
		"its own pod, elsewhere":        ticket("p", "n2", ledger.TypePod, "a"),
		"more slots than are left":      ticket("q", "n1", ledger.TypePod, "b", "c"),
		"its volume, elsewhere":         ticket("q", "n2", ledger.TypePod, "a"),
	} {
		l := facts(pod("p", "", "a"), pod("q", "", "a", "b", "c"), r, asks,
			ledger.NodeState{Name: "n2", UID: "n2", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
			ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2}}})
		s := l.Snapshot()
		if d := Rule(arbiter.Arbiter{}, s, s.Ticket(asks.ID), p.now); d.Ruling == Grant {
			t.Errorf("%s: granted", name)
		}
	}
}

// Who begins to lead fences every pod that the one before may have in mind to bind, where
// leaders bind pods.
func TestTakeOverFencesPods(t *testing.T) {
	for name, test := range map[string]struct {
		pod   ledger.Pod
		binds bool
		want  int
	}{
		"a pod without a node":               {pod("p", "", "a"), true, 1},
		"a pod without a node, and no binds": {pod("p", "", "a"), false, 0},
		"a pod with a node":                  {pod("p", "n1", "a"), true, 0},
		"a pod without volumes":              {pod("p", ""), true, 0},
		"a pod that is deleted":              {ledger.Pod{UID: "uid-p", Version: "1", Namespace: "s", Name: "p", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "a", Claim: "a"}}}, true, 0},
	} {
		p := newPlayer(test.pod)
		p.memory.Binds = test.binds
		fences := 0
		for range 10 {
			tasks := p.memory.TakeOver(p.ledger.Snapshot())
			for _, task := range tasks {
				switch {
				case task.Doubts:
					p.play(t, task)
				case task.Commit.Do == FencePod:
					fences++
					p.play(t, task, replies(Done, test.pod), replies(Done))
				default:
					p.play(t, task, replies(Done))
				}
			}
			if len(tasks) == 0 {
				break
			}
		}
		if fences != test.want || len(p.memory.TakeOver(p.ledger.Snapshot())) > 0 {
			t.Errorf("%s: %d fences, want %d, and nothing left", name, fences, test.want)
		}
	}
}
