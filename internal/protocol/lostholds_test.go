// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func (p *player) plan(a rules.Arbiter, id ledger.VolumeID) (list []rules.Step) {
	return a.Plan(p.ledger.Snapshot(), id, p.now).Steps
}

func stepOf(list []rules.Step, do rules.Kind) *rules.Step {
	for i := range list {
		if list[i].Kind == do {
			return &list[i]
		}
	}
	return nil
}

func (p *player) settle(t *testing.T, a rules.Arbiter, id ledger.VolumeID, version string) ledger.Hold {
	t.Helper()
	w := stepOf(p.plan(a, id), rules.WriteHold)
	if w == nil {
		t.Fatalf("no write: %v", p.plan(a, id))
	}
	h := w.Hold
	h.Version = version
	p.play(t, Do(*w), replies(Done, ledger.HoldSeen{Volume: id, Hold: h}))
	return h
}

// as TestLostHoldIsNotBelieved, but with the hold as the planner itself writes it.
func TestLostHoldIsNotBelievedThoughItSaysTheSame(t *testing.T) {
	a := rules.Arbiter{StayAttached: true}
	p := newPlayer(node("1", func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{disk} }), pod("p", "n1", "a"), attachment("5"), ledger.Complete{})
	p.settle(t, a, disk, "1")
	// A user deletes the VolumeAttachment, its detach fails: the hold says Stays, the attacher is
	// informed, and ends it.
	p.ledger.Apply(p.now, attachment("6", func(a *ledger.Attachment) { a.Deleting, a.DetachError = true, ledger.CallError{Message: "no"} }))
	h := p.settle(t, a, disk, "2")
	if !h.Stays {
		t.Fatal("not stays")
	}
	if w := stepOf(p.plan(a, disk), rules.MarkWanted); w == nil {
		t.Fatal("not asked")
	}
	p.ledger.Apply(p.now, ledger.AttachmentGone{Name: name})
	w := stepOf(p.plan(a, disk), rules.WriteHold)
	p.play(t, Do(*w), replies(NotSent)) // it is planned beside the creation, which succeeds
	// It is attached anew.
	again := func(version string, change ...func(*ledger.Attachment)) ledger.Attachment {
		x := attachment(version, change...)
		x.UID = "va2"
		return x
	}
	p.ledger.Apply(p.now, again("8"))
	w = stepOf(p.plan(a, disk), rules.WriteHold)
	if w == nil || w.Hold.Stays {
		t.Fatalf("nothing takes it back: %v", p.plan(a, disk))
	}
	// The API server carries this out: from now on its hold does not say Stays. No answer arrives.
	p.play(t, Do(*w), replies(Unknown))
	// A user deletes that VolumeAttachment as well, and the detach fails.
	p.ledger.Apply(p.now, again("9", func(a *ledger.Attachment) { a.Deleting, a.DetachError = true, ledger.CallError{Message: "no"} }))
	if w := stepOf(p.plan(a, disk), rules.MarkWanted); w != nil {
		t.Errorf("the attacher is told to leave the volume at n1; the hold in the API does not say Stays. Plan: %+v", p.plan(a, disk))
	}
}

// the hold's fence is taken back in a write that is not answered; the taint is set again.
func TestLostHoldOfAFence(t *testing.T) {
	a := rules.Arbiter{}
	inUse := func(n *ledger.NodeState) {
		n.Reported, n.InUse, n.BootID, n.SystemUUID, n.ReadySince = []ledger.VolumeID{disk}, []ledger.VolumeID{disk}, "b", "m", 50
	}
	p := newPlayer(node("1", inUse), pod("p", "n1", "a"), attachment("5"), ledger.Complete{})
	p.settle(t, a, disk, "1")
	p.ledger.Apply(p.now, node("2", inUse, tainted)) // out of service
	p.settle(t, a, disk, "2")
	if u := stepOf(p.plan(a, disk), rules.Unreport); u == nil {
		t.Fatalf("not taken: %v", p.plan(a, disk))
	}
	// before it is taken out, the taint is removed
	p.ledger.Apply(p.now, node("3", inUse, silent))
	w := stepOf(p.plan(a, disk), rules.WriteHold)
	if w == nil || len(w.Hold.Fences) != 0 {
		t.Fatalf("the fence is not taken back: %+v", p.plan(a, disk))
	}
	p.play(t, Do(*w), replies(Unknown)) // carried out: the hold in the API has no fence any more
	p.ledger.Apply(p.now, node("4", inUse, tainted))
	if u := stepOf(p.plan(a, disk), rules.Unreport); u != nil {
		t.Errorf("it is taken by force (%s), and the hold in the API does not say so", u.Rule)
	}
}

// the hold in the API gives the volume to n2; it is reported at n1.
func TestLostHoldOfAnotherNode(t *testing.T) {
	p := iscsiWorld(iscsiPod("p", "n1"))
	a := rules.Arbiter{}
	p.settle(t, a, iscsi, "1")
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, iscsiPod("q", "n2"))
	for _, s := range p.plan(a, iscsi) {
		if s.Kind == rules.WriteHold {
			p.settle(t, a, iscsi, "2")
		}
	}
	u := stepOf(p.plan(a, iscsi), rules.ProveAbsent)
	if u == nil {
		t.Fatal("nobody looks")
	}
	p.play(t, Do(*u), replies(Done, node("2")))
	w := stepOf(p.plan(a, iscsi), rules.WriteHold)
	if w == nil || w.Hold.Node != "n2" {
		t.Fatalf("%v", p.plan(a, iscsi))
	}
	inAPI := w.Hold
	inAPI.Version = "3"
	p.play(t, Do(*w), replies(Unknown)) // carried out
	p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
	p.ledger.Apply(p.now, iscsiPod("r", "n1"))
	r := stepOf(p.plan(a, iscsi), rules.Report)
	if r == nil || r.Node != "n1" {
		return // it is not reported there
	}
	t.Errorf("it is put into volumesAttached of %s, and the hold in the API gives it to %s", r.Node, inAPI.Node)
	p.play(t, Do(*r), replies(Unknown), replies(Unknown)) // carried out
	// the leader dies; r is deleted, and the next leader's cache of Nodes is old
	next := iscsiWorld(ledger.HoldSeen{Volume: iscsi, Hold: inAPI}, iscsiPod("s", "n2"))
	if _, proved := next.reportedAt(t, "n2"); !proved {
		t.Error("it is put into volumesAttached of n2, and n1's names it")
	}
}

// A refused write of the hold says nothing about an earlier unanswered write: the hold is read once that is
// outlasted.
func TestRefusedHoldAfterALostOne(t *testing.T) {
	held := ledger.Hold{Version: "3", Node: "n1", State: ledger.HoldHeld}
	p := newPlayer(node("1"), pod("p", "n1", "a"), ledger.HoldSeen{Volume: disk, Hold: held}, ledger.Complete{})
	write := step(rules.WriteHold, func(s *rules.Step) { s.Expect, s.Hold = "3", held })
	check(t, p.play(t, Do(write), replies(Unknown)), "write-hold version=3", "tell HoldUnanswered", "failed")
	if steps := p.plan(rules.Arbiter{}, disk); len(steps) != 1 || steps[0].Kind != rules.WriteHold || steps[0].Hold.Grants != 1 {
		t.Errorf("beside a hold that may be another one by now: %+v", steps)
	}
	check(t, p.play(t, Do(write), replies(Refused), replies(Done, ledger.HoldSeen{Volume: disk, Hold: held})),
		"write-hold version=3", "wait 20s", "get holds d^a", "tell HoldAnswered", "stale")
	if steps := p.plan(rules.Arbiter{}, disk); stepOf(steps, rules.WriteHold) != nil && len(steps) == 1 {
		t.Errorf("the hold has been read: %+v", steps)
	}
}

// the target node of a migration of a volume without VolumeAttachments is not the node in its hold.
func TestLostReportOfAMigrationWithoutAttachment(t *testing.T) {
	p := iscsiWorld(iscsiPod("p", "n1"), node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n3", "o" }),
		ledger.Policy{Name: "m", Version: "1", Driver: "kubernetes.io/iscsi", LiveMigration: true, Says: ledger.FieldLiveMigration})
	a := rules.Arbiter{}
	p.settle(t, a, iscsi, "1")
	if r := stepOf(p.plan(a, iscsi), rules.Report); r != nil {
		p.play(t, Do(*r), replies(Done, node("2", func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{iscsi} })))
	}
	m := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "m"}, UID: "tm", Version: "1", Type: ledger.TypeLiveMigration, Node: "n2", Phase: ledger.TicketGranted,
		Volumes: []ledger.TicketVolume{{Claim: "i"}}}
	p.ledger.Apply(p.now, m)
	for range 3 {
		if w := stepOf(p.plan(a, iscsi), rules.WriteHold); w != nil {
			p.settle(t, a, iscsi, string(rune('2'+len(w.Expect)))+w.Expect)
		}
	}
	r := stepOf(p.plan(a, iscsi), rules.Report)
	if r == nil || r.Node != "n2" {
		t.Fatalf("%+v", p.plan(a, iscsi))
	}
	p.play(t, Do(*r), replies(Unknown), replies(Unknown)) // carried out; neither answer arrives
	p.ledger.Apply(p.now, ledger.TicketGone{ID: m.ID, UID: "tm"})
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, iscsiPod("q", "n3"))
	provedAt := map[ledger.NodeName]bool{}
	version := 100
	for range 8 {
		for _, s := range p.plan(a, iscsi) {
			switch s.Kind {
			case rules.WriteHold:
				version++
				h := s.Hold
				h.Version = "9" + string(rune('0'+version-100))
				p.play(t, Do(s), replies(Done, ledger.HoldSeen{Volume: iscsi, Hold: h}))
			case rules.Unreport, rules.ProveAbsent:
				provedAt[s.Node] = true
				is := node("5")
				is.Name, is.UID = s.Node, s.NodeUID
				p.play(t, Do(s), replies(Done, is))
			case rules.Report:
				if s.Node == "n3" && !provedAt["n2"] {
					t.Fatal("it is put into volumesAttached of n3, and that of n2 names it: nobody has looked")
				}
			default:
			}
		}
	}
	if !provedAt["n2"] {
		t.Error("nothing shows that n2 does not name it")
	}
}
