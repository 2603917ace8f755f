// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func inUseSince(since int64) func(n *ledger.NodeState) {
	return func(n *ledger.NodeState) {
		n.Reported, n.InUse, n.BootID, n.SystemUUID, n.ReadySince = []ledger.VolumeID{disk}, []ledger.VolumeID{disk}, "b", "m", since
	}
}

func sharedWorld() *player {
	drivers := func(n ledger.NodeName) ledger.Event {
		return ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2, NodeID: string(n)}}}
	}
	return newPlayer(node("1", inUseSince(40)), pod("p", "n1", "a"), attachment("5"), ledger.Complete{}, drivers("n1"), drivers("n2"),
		node("1", func(n *ledger.NodeState) { n.Name, n.UID, n.BootID = "n2", "m2", "b2" }),
		ledger.PersistentVolume{Name: "a", Version: "9", Volume: disk, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "s", Name: "a"}})
}

// The hold's rule ends before the detach.
func (p *player) hasNothingToSay(t *testing.T) rules.Step {
	t.Helper()
	p.ledger.Apply(p.now, node("2", inUseSince(50), tainted))
	p.settle(t, rules.Arbiter{}, disk, "2")
	p.ledger.Apply(p.now, node("3", inUseSince(60)))
	drop := stepOf(p.plan(rules.Arbiter{}, disk), rules.DeleteHold)
	if drop == nil {
		t.Fatalf("the hold is not deleted: %v", p.plan(rules.Arbiter{}, disk))
	}
	return *drop
}

// Reads give the known hold.
func (p *player) drive(t *testing.T, task Task, came Result) {
	t.Helper()
	task, m := p.memory.Next(task, p.ledger.Snapshot(), p.now)
	for range 50 {
		for _, e := range m.Tell {
			p.ledger.Apply(p.now, e)
		}
		switch {
		case m.End != Going:
			return
		case m.Send != nil && m.Send.Kind == rules.GetObject:
			seen := ledger.HoldSeen{Volume: disk, Hold: *p.ledger.Snapshot().Volume(disk).Hold}
			task, m = p.memory.Answer(task, Answer{Result: Done, Facts: []ledger.Event{seen}}, p.ledger.Snapshot(), p.now)
		case m.Send != nil:
			task, m = p.memory.Answer(task, Answer{Result: came}, p.ledger.Snapshot(), p.now)
		default:
			if !m.Wait.IsZero() {
				p.now = m.Wait
			}
			task, m = p.memory.Next(task, p.ledger.Snapshot(), p.now)
		}
	}
	t.Fatal("the task does not end")
}

func (p *player) carriesOut(t *testing.T) {
	t.Helper()
	for range 10 {
		for _, s := range p.plan(rules.Arbiter{}, disk) {
			switch {
			case s.Kind == rules.WriteHold:
				h := s.Hold
				was, _ := strconv.Atoi(s.Expect)
				h.Version = strconv.Itoa(was + 1000)
				p.play(t, Do(s), replies(Done, ledger.HoldSeen{Volume: disk, Hold: h}))
			case s.Kind == rules.DeleteHold:
				p.play(t, Do(s), replies(Done))
				p.ledger.Apply(p.now, ledger.HoldGone{Volume: disk})
			}
		}
	}
}

func (p *player) leavesByItself(t *testing.T, version string, uid string) (unreported bool) {
	t.Helper()
	p.ledger.Apply(p.now, ledger.PodGone{UID: uid})
	p.ledger.Apply(p.now, node(version, inUseSince(60), func(n *ledger.NodeState) { n.InUse = nil }))
	for range 4 {
		p.carriesOut(t)
		for _, s := range p.plan(rules.Arbiter{}, disk) {
			switch {
			case s.Kind == rules.Unreport:
				unreported = true
				p.play(t, Do(s), replies(Done, node(version+"1", inUseSince(60), func(n *ledger.NodeState) { n.Reported, n.InUse = nil, nil })))
			case s.Kind == rules.ConfirmUnwanted:
				p.play(t, Do(s), replies(Done))
			case s.Kind == rules.DeleteAttachment:
				p.play(t, Do(s), replies(Done))
				p.ledger.Apply(p.now, ledger.AttachmentGone{Name: name})
			}
		}
	}
	return unreported
}

func (p *player) usedAgain(t *testing.T) (detached bool) {
	t.Helper()
	p.carriesOut(t)
	p.ledger.Apply(p.now, pod("r", "n1", "a"))
	p.carriesOut(t)
	p.ledger.Apply(p.now, attachment("305", func(x *ledger.Attachment) { x.UID = "va9" }))
	p.carriesOut(t)
	p.ledger.Apply(p.now, node("500", inUseSince(60)))
	p.carriesOut(t)
	p.now = p.now.Add(time.Hour)
	return p.leavesByItself(t, "600", "uid-r")
}

func TestLostDeletionIsKnownAsOurs(t *testing.T) {
	for _, came := range []Result{Unknown, Done} {
		p := sharedWorld()
		p.play(t, Do(p.hasNothingToSay(t)), replies(came))
		p.ledger.Apply(p.now, ledger.HoldGone{Volume: disk})
		if !p.leavesByItself(t, "4", "uid-p") || !p.usedAgain(t) {
			t.Errorf("%s: the volume is never detached from n1", came)
		}
		if h := p.ledger.Snapshot().Volume(disk).Hold; h != nil {
			t.Errorf("%s: the hold says %+v", came, *h)
		}
	}
}

// The unanswered creation appears after its rule's end.
func TestLostCreationOfAFence(t *testing.T) {
	for _, came := range []Result{Unknown, NotSent} {
		p := sharedWorld()
		p.ledger.Apply(p.now, node("2", inUseSince(50), tainted))
		w := stepOf(p.plan(rules.Arbiter{}, disk), rules.WriteHold)
		if w == nil || len(w.Hold.Fences) == 0 || w.Expect != "" {
			t.Fatalf("%+v", w)
		}
		p.play(t, Do(*w), replies(came))
		p.ledger.Apply(p.now, node("3", inUseSince(60)))
		if came == Unknown {
			again := stepOf(p.plan(rules.Arbiter{}, disk), rules.WriteHold)
			if again == nil || len(p.plan(rules.Arbiter{}, disk)) != 1 {
				t.Fatalf("it goes on as if the hold were not there: %v", p.plan(rules.Arbiter{}, disk))
			}
			is := w.Hold
			is.Version = "9"
			p.play(t, Do(*again), replies(Exists), replies(Done, ledger.HoldSeen{Volume: disk, Hold: is}))
		}
		if !p.leavesByItself(t, "4", "uid-p") || !p.usedAgain(t) {
			t.Errorf("%s: the volume is never detached from n1", came)
		}
	}
}

// A read shows it once the creation can't happen.
func TestLostCreationThatCameToNothing(t *testing.T) {
	p := sharedWorld()
	p.ledger.Apply(p.now, node("2", inUseSince(50), tainted))
	p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, disk), rules.WriteHold)), replies(Unknown))
	p.ledger.Apply(p.now, node("3", inUseSince(60)))
	p.ledger.Apply(p.now, pod("q", "n2", "a"))
	p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, disk), rules.WriteHold)), replies(Refused), replies(NotFound))
	if stepOf(p.plan(rules.Arbiter{}, disk), rules.CreateAttachment) == nil {
		t.Errorf("pod q waits at n2: %v", p.plan(rules.Arbiter{}, disk))
	}
}

func TestRefusedDeletionAfterALostOne(t *testing.T) {
	for _, came := range []Result{Refused, Unknown} {
		p := sharedWorld()
		p.play(t, Do(p.hasNothingToSay(t)), replies(Unknown))
		p.ledger.Apply(p.now, pod("q", "n2", "a"))
		attaches := false
		for range 3 {
			for _, s := range p.plan(rules.Arbiter{}, disk) {
				attaches = attaches || s.Kind == rules.CreateAttachment
				if s.Kind == rules.DeleteHold {
					p.drive(t, Do(s), came)
				}
			}
		}
		if !attaches {
			t.Errorf("%s: pod q waits at n2: %v", came, p.plan(rules.Arbiter{}, disk))
		}
		if came == Refused && stepOf(p.plan(rules.Arbiter{}, disk), rules.DeleteHold) == nil {
			t.Error("it is not deleted any more")
		}
	}
}

func TestDeletedHoldIsNotDeletedAgain(t *testing.T) {
	for _, first := range []Result{Done, Unknown} {
		p := sharedWorld()
		drop := p.hasNothingToSay(t)
		if first == Unknown {
			p.play(t, Do(drop), replies(Unknown))
		}
		p.play(t, Do(drop), replies(Done))
		p.ledger.Apply(p.now, pod("q", "n2", "a"))
		if plan := p.plan(rules.Arbiter{}, disk); stepOf(plan, rules.DeleteHold) != nil || stepOf(plan, rules.CreateAttachment) == nil {
			t.Errorf("%s: it plans %v", first, plan)
		}
	}
}

// With a failing webhook, the volume is still put into volumesAttached.
func TestNoWriteOfAHoldIsAnswered(t *testing.T) {
	a := rules.Arbiter{}
	p := newPlayer(node("1"), pod("p", "n1", "a"), ledger.Complete{},
		ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2, NodeID: "x"}}})
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "1", Node: "n1", NodeUID: "n", State: ledger.HoldHeld, Transitions: 1}})
	p.ledger.Apply(p.now, attachment("5", func(x *ledger.Attachment) { x.Attached = true }))
	p.ledger.Apply(p.now, pod("p2", "n1", "a"))
	reports := 0
	for range 6 {
		plan := p.plan(a, disk)
		if stepOf(plan, rules.Report) != nil {
			reports++
		}
		p.drive(t, Do(*stepOf(plan, rules.WriteHold)), Unknown)
	}
	if reports < 2 {
		t.Errorf("it is reported %d times, and then plans %v", reports, p.plan(a, disk))
	}
}

func TestWhatEndsTheDoubtAboutAHold(t *testing.T) {
	held := ledger.Hold{Version: "3", Node: "n1", State: ledger.HoldHeld}
	same := ledger.HoldSeen{Volume: disk, Hold: held}
	for name, test := range map[string]struct {
		replies []reply
		does    []string
		doubted bool
	}{
		"carried out, and no other version": {[]reply{replies(Done, same), replies(Done, same)}, []string{"wait 20s", "get holds d^a", "tell HoldAnswered", "stale"}, false},
		"gone, as a read has it":            {[]reply{replies(Conflict), replies(NotFound)}, []string{"get holds d^a", "failed"}, true},
		"not answered again":                {[]reply{replies(Unknown), replies(Unknown)}, []string{"wait 20s", "tell HoldUnanswered", "get holds d^a", "failed"}, true},
		"not sent":                          {[]reply{replies(NotSent)}, []string{"failed"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(node("1"), pod("p", "n1", "a"), same, ledger.Complete{})
			write := step(rules.WriteHold, func(s *rules.Step) { s.Expect, s.Hold = "3", held })
			p.play(t, Do(write), replies(Unknown))
			got := p.play(t, Do(write), test.replies...)
			slices.Sort(got[1:])
			slices.Sort(test.does)
			check(t, got, append([]string{"write-hold version=3"}, test.does...)...)
			if unanswered(p.ledger.Snapshot(), disk) > 0 != test.doubted {
				t.Errorf("%d writes are doubted", unanswered(p.ledger.Snapshot(), disk))
			}
			p.ledger.Apply(p.now, ledger.HoldGone{Volume: disk})
			if unanswered(p.ledger.Snapshot(), disk) > 0 {
				t.Error("it is doubted, and is gone")
			}
		})
	}
}

func TestSilentHoldIsWrittenAgain(t *testing.T) {
	p := sharedWorld()
	free := ledger.Hold{Version: "3", State: ledger.HoldFree, Transitions: 1, PVs: []string{"a"}}
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: disk, Hold: free})
	p.ledger.Apply(p.now, ledger.HoldUnanswered{Volume: disk, Version: "3"})
	if w := stepOf(p.plan(rules.Arbiter{}, disk), rules.WriteHold); w == nil || w.Hold.State != ledger.HoldFree || w.Hold.Grants != 1 {
		t.Errorf("it plans %v", p.plan(rules.Arbiter{}, disk))
	}
}

func TestDoubtAboutAHoldIsTold(t *testing.T) {
	held := ledger.Hold{Version: "3", Node: "n1", State: ledger.HoldHeld, PVs: []string{"a"}}
	again := held
	again.Version, again.Grants = "4", 1
	p := newPlayer(node("1"), pod("p", "n1", "a"), ledger.HoldSeen{Volume: disk, Hold: held}, ledger.Complete{})
	for _, e := range []ledger.Event{ledger.HoldUnanswered{Volume: disk, Version: "3"}, ledger.HoldSeen{Volume: disk, Hold: again}} {
		if touched := p.ledger.Apply(p.now, e); !slices.Contains(touched.Volumes, disk) {
			t.Errorf("%T: it tells of %v", e, touched.Volumes)
		}
	}
}

func TestLostDeletionAfterTheWatch(t *testing.T) {
	for _, came := range []Result{Unknown, Done} {
		p := sharedWorld()
		task, m := p.memory.Next(Do(p.hasNothingToSay(t)), p.ledger.Snapshot(), p.now)
		if m.Send == nil || m.Send.Kind != rules.DeleteHold {
			t.Fatalf("%+v", m)
		}
		p.ledger.Apply(p.now, ledger.HoldGone{Volume: disk}) // it is carried out
		_, m = p.memory.Answer(task, Answer{Result: came}, p.ledger.Snapshot(), p.now)
		for _, e := range m.Tell {
			p.ledger.Apply(p.now, e)
		}
		if h := p.ledger.Snapshot().Volume(disk).Hold; h != nil {
			t.Errorf("%s: the hold says %+v, plan %+v", came, *h, p.plan(rules.Arbiter{}, disk))
		}
		if !p.leavesByItself(t, "4", "uid-p") || !p.usedAgain(t) {
			t.Errorf("%s: the volume is never detached from n1: doubts %t", came, isUnknown(p.ledger.Snapshot(), disk, "n1"))
		}
	}
}

func TestDeletedFenceIsNotBelieved(t *testing.T) {
	for _, came := range []Result{Done, Unknown} {
		p := sharedWorld()
		a := rules.Arbiter{}
		p.ledger.Apply(p.now, node("2", inUseSince(50), tainted))
		p.settle(t, a, disk, "2")
		p.ledger.Apply(p.now, node("3", inUseSince(50), silent)) // the taint is removed
		drop := stepOf(p.plan(a, disk), rules.DeleteHold)
		if drop == nil {
			t.Fatalf("the hold is not deleted: %+v", p.plan(a, disk))
		}
		if came == Unknown {
			p.play(t, Do(*drop), replies(Unknown))
		}
		p.play(t, Do(*drop), replies(Done)) // the API has no hold any more
		p.ledger.Apply(p.now, node("4", inUseSince(50), tainted))
		plan := p.plan(a, disk)
		if u := stepOf(plan, rules.Unreport); u != nil {
			t.Errorf("%s: it is taken by force (%s), and the API has no hold: %+v", came, u.Rule, plan)
		}
	}
}

// A user deletes the hold; the rule ends before the next write.
func TestUnwrittenFenceDoesNotComeBack(t *testing.T) {
	t.Run("never exclusive", func(t *testing.T) {
		p := sharedWorld()
		unwrittenFenceDoesNotComeBack(t, p)
		p.ledger.Apply(p.now, ledger.PersistentVolumeGone{Name: "a"})
		if v := p.ledger.Snapshot().Volume(disk); v != nil {
			t.Errorf("record is kept: %+v hold %+v plan %+v", v, v.Hold, p.plan(rules.Arbiter{}, disk))
		}
	})
	t.Run("exclusive once", func(t *testing.T) {
		p := sharedWorld()
		p.ledger.Apply(p.now, ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "1", State: ledger.HoldFree, Transitions: 3, PVs: []string{"a"}}})
		unwrittenFenceDoesNotComeBack(t, p)
		if h := p.ledger.Snapshot().Volume(disk).Hold; h == nil || h.Transitions != 3 {
			t.Errorf("the hold says %+v", h)
		}
	})
}

func unwrittenFenceDoesNotComeBack(t *testing.T, p *player) {
	t.Helper()
	a := rules.Arbiter{}
	p.ledger.Apply(p.now, node("2", inUseSince(50), tainted))
	p.settle(t, a, disk, "2")
	p.ledger.Apply(p.now, ledger.HoldGone{Volume: disk}) // kubectl delete
	p.ledger.Apply(p.now, node("3", inUseSince(60)))
	if s := stepOf(p.plan(a, disk), rules.DeleteHold); s != nil { // nothing is sent: the API has no hold
		p.play(t, Do(*s))
	}
	if !p.leavesByItself(t, "4", "uid-p") || !p.usedAgain(t) {
		t.Errorf("the volume is never detached: hold %+v plan %+v doubts %t", p.ledger.Snapshot().Volume(disk).Hold, p.plan(a, disk), isUnknown(p.ledger.Snapshot(), disk, "n1"))
	}
}

func TestEmptyHoldIsDeleted(t *testing.T) {
	p := sharedWorld()
	p.ledger.Apply(p.now, node("2", inUseSince(50), tainted))
	p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, disk), rules.WriteHold)), replies(Unknown)) // not carried out
	p.ledger.Apply(p.now, node("3", inUseSince(60)))
	for range 4 {
		p.carriesOut(t)
	}
	if h := p.ledger.Snapshot().Volume(disk).Hold; h != nil {
		t.Errorf("a hold that says nothing stays: %+v; plan %+v", *h, p.plan(rules.Arbiter{}, disk))
	}
}

func TestCooperativeDeletesOnce(t *testing.T) {
	a := rules.Arbiter{Cooperative: true}
	p := newPlayer(node("1"), ledger.Complete{}, ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "5", State: ledger.HoldFree, Transitions: 3}})
	v := p.ledger.Snapshot().Volume(disk)
	for _, pv := range v.PVs() {
		p.ledger.Apply(p.now, ledger.PersistentVolumeGone{Name: pv})
	}
	for i := range 3 {
		drop := stepOf(p.plan(a, disk), rules.DeleteHold)
		if drop == nil {
			break
		}
		if i > 0 {
			t.Errorf("deleted %d times", i+1)
		}
		p.play(t, Do(*drop), replies(Done))
	}
}
