// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strconv"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A shared volume without VolumeAttachments is at n1 and n2. The report at n2 is carried out; neither its
// answer nor the read after it arrives. The pods go. A ticket asks for the volume to be detached; n1 is
// proved, the write at n2 is not sent yet.
func TestLostReportIsSomewhere(t *testing.T) {
	key := ledger.ClaimKey{Namespace: "ns", Name: "i"}
	p := newPlayer(node("1"), node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n2", "m" }),
		ledger.PersistentVolume{Name: "i", Version: "1", Volume: iscsi, Access: ledger.AccessMany, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "i", Bound: true}, ledger.Complete{}, iscsiPod("p", "n1"), iscsiPod("q", "n2"))
	a := rules.Arbiter{}
	version := 0
	for _, s := range p.plan(a, iscsi) {
		if s.Node == "n1" {
			p.play(t, Do(s), replies(Done, node("2", func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{iscsi} })))
		} else {
			p.play(t, Do(s), replies(Unknown), replies(Unknown)) // carried out
		}
	}
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
	asks := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "e"}, UID: "te", Version: "1", Type: ledger.TypeExpansion, Node: ledger.Detached,
		Phase: ledger.TicketPending, Volumes: []ledger.TicketVolume{{Claim: "i"}}}
	p.ledger.Apply(p.now, asks)
	s := p.ledger.Snapshot()
	d := Rule(a, s, s.Ticket(asks.ID), p.now)
	one := Decided{s.Ticket(asks.ID), d}
	for _, e := range Announce([]Decided{one}) {
		p.ledger.Apply(p.now, e)
	}
	granted := asks
	granted.Version, granted.Phase, granted.Granted = "2", ledger.TicketGranted, d.Volumes
	p.play(t, Decide(one), replies(Done, granted))
	for range 4 {
		for _, step := range p.plan(a, iscsi) {
			switch {
			case step.Kind == rules.WriteHold:
				version++
				is := step.Hold
				is.Version = strconv.Itoa(version)
				p.play(t, Do(step), replies(Done, ledger.HoldSeen{Volume: iscsi, Hold: is}))
			case step.Kind == rules.Unreport && step.Node == "n1":
				p.play(t, Do(step), replies(Done, node("5")))
			case step.Kind == rules.Unreport && step.Node == "n2":
				p.play(t, Do(step), replies(NotSent)) // 429
			case step.Node == "n1" && step.Kind == rules.ConfirmUnwanted:
				p.play(t, Do(step), replies(Done))
			}
		}
		s = p.ledger.Snapshot()
		if v := a.Satisfied(s, s.Ticket(asks.ID), p.now); v.Allowed() {
			t.Fatal("the ticket is told that its volume is attached nowhere, and volumesAttached of n2 names it")
		}
	}
}

// A shared volume: its hold says that the node is out of service. The node comes back before anything is
// taken, and the empty hold is deleted: carried out, no answer. The node is out of service again.
func TestLostDeletionOfAHold(t *testing.T) {
	a := rules.Arbiter{}
	at := func(since int64) func(n *ledger.NodeState) {
		return func(n *ledger.NodeState) {
			n.Reported, n.InUse, n.BootID, n.SystemUUID, n.ReadySince = []ledger.VolumeID{disk}, []ledger.VolumeID{disk}, "b", "m", since
		}
	}
	p := newPlayer(
		node("1", at(40)), pod("p", "n1", "a"), attachment("5"), ledger.Complete{})
	p.ledger.Apply(p.now, ledger.PersistentVolume{Name: "a", Version: "9", Volume: disk, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "s", Name: "a"}})
	p.ledger.Apply(p.now, node("2", at(50), tainted))
	p.settle(t, a, disk, "2")
	if u := stepOf(p.plan(a, disk), rules.Unreport); u == nil {
		t.Fatalf("not taken")
	}
	p.ledger.Apply(p.now, node("3", at(60)))
	d := stepOf(p.plan(a, disk), rules.DeleteHold)
	if d == nil {
		t.Fatal("no deletion")
	}
	p.play(t, Do(*d), replies(Unknown)) // the API server carries it out: the hold is gone
	p.ledger.Apply(p.now, node("4", at(70), tainted))
	if u := stepOf(p.plan(a, disk), rules.Unreport); u != nil {
		t.Errorf("it is taken by force (%s), and the API has no hold that says so", u.Rule)
	}
}

// An exclusive volume: its hold, which still names n1, is deleted since its PersistentVolume is gone:
// carried out, no answer.
func TestLostDeletionOfAnExclusiveHold(t *testing.T) {
	a := rules.Arbiter{}
	p := newPlayer(node("1"), ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2}}}, ledger.Complete{})
	for _, e := range []ledger.Event{ledger.PersistentVolumeGone{Name: "a"}} {
		p.ledger.Apply(p.now, e)
	}
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "3", Node: "n1", NodeUID: "n", State: ledger.HoldHeld, Transitions: 4, PVs: []string{"a"}}})
	d := stepOf(p.plan(a, disk), rules.DeleteHold)
	if d == nil {
		t.Fatal()
	}
	p.play(t, Do(*d), replies(Unknown))
	p.ledger.Apply(p.now, ledger.PersistentVolume{Name: "a", UID: "again", Version: "20", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: "a"}})
	p.ledger.Apply(p.now, pod("p", "n1", "a"))
	if c := stepOf(p.plan(a, disk), rules.CreateAttachment); c != nil {
		t.Errorf("an attachment with transitions %d is made beside a hold that the API has not", c.Transitions)
	}
}

// A new leader's cache of Nodes is behind: volumesAttached of n1 names the volume (shared, no
// VolumeAttachments, so that it has no hold), and n1's kubelet is unmounting it for a deleted pod. A ticket
// asks for it to be detached.
func TestTakeOverListsNodesForSharedVolumes(t *testing.T) {
	key := ledger.ClaimKey{Namespace: "ns", Name: "i"}
	asks := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "e"}, UID: "te", Version: "1", Type: ledger.TypeExpansion, Node: ledger.Detached, Phase: ledger.TicketPending, Volumes: []ledger.TicketVolume{{Claim: "i"}}}
	p := newPlayer(
		node("1"), ledger.PersistentVolume{Name: "i", Version: "1", Volume: iscsi, Access: ledger.AccessMany, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "i", Bound: true}, asks, ledger.Complete{})
	for {
		tasks := p.memory.TakeOver(p.ledger.Snapshot())
		if len(tasks) == 0 {
			break
		}
		for _, task := range tasks {
			if task.TookOver {
				p.play(t, task)
				renewed := asks
				renewed.Version, renewed.Epoch = "2", 7
				p.ledger.Apply(p.now, renewed)
				continue
			}
			if task.Commit.Object == Nodes {
				return // this shows where it is
			}
			p.play(t, task, replies(Done))
		}
	}
	t.Error("a ticket may be told that its volume is attached nowhere, and nobody has looked at volumesAttached of n1")
}
