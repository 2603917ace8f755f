// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strconv"
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// lostGrant has the one ticket at n1 granted, with some holds; neither the answer nor the answer of the
// read after it arrives.
func lostGrant(t *testing.T, p *player, holds int) {
	t.Helper()
	d, _ := Round(arbiter.Arbiter{}, p.ledger.Snapshot(), "n1", p.now, nil)
	for _, e := range Announce(d) {
		p.ledger.Apply(p.now, e)
	}
	if d[0].Ruling != Grant || len(d[0].Holds) != holds {
		t.Fatalf("%+v", d)
	}
	var list []reply
	for _, s := range d[0].Holds {
		h := s.Hold
		h.Version = "7"
		list = append(list, replies(Done, ledger.HoldSeen{Volume: s.Volume, Hold: h}))
	}
	p.play(t, Decide(d[0]), append(list, replies(Unknown), replies(Unknown))...) // carried out
	if !p.ledger.Snapshot().Ticket(d[0].Ticket.ID).InDoubt {
		t.Fatal("it is not in doubt")
	}
}

// A ticket is in doubt, and its volume's hold is deleted by hand.
func TestDeletedHoldOfATicketInDoubt(t *testing.T) {
	for _, how := range []string{"lost answers", "a new leader"} {
		p := newPlayer(ticket("p", "n1", ledger.TypeManual, "a"), ledger.Complete{},
			ledger.NodeDrivers{Node: "n2", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 4, NodeID: "n2"}}})
		if how == "lost answers" {
			lostGrant(t, p, 1)
		} else {
			p.ledger.Apply(p.now, ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "7", Node: "n1", State: ledger.HoldHeld, Transitions: 1, PVs: []string{"a"},
				Requesters: []ledger.Requester{{Ticket: true, Namespace: "s", Name: "uid-p", UID: "t-p"}}}})
			p.ledger.Apply(p.now, ledger.TicketInDoubt{ID: ticket("p", "n1", ledger.TypeManual).ID, UID: "t-p"}) // Memory.TakeOver
		}
		q := ticket("q", "n2", ledger.TypeManual, "a")
		q.Created = -1
		p.ledger.Apply(p.now, q)
		if d, _ := Round(arbiter.Arbiter{}, p.ledger.Snapshot(), "n2", p.now, nil); d[0].Ruling == Grant {
			t.Fatal("with the hold")
		}
		q.ID.Name, q.UID = "uid-q2", "t-q2"
		p.ledger.Apply(p.now, q)
		p.ledger.Apply(p.now, ledger.HoldGone{Volume: disk})
		d, _ := Round(arbiter.Arbiter{}, p.ledger.Snapshot(), "n2", p.now, nil)
		for _, one := range d {
			if one.Ruling == Grant {
				t.Errorf("%s: %s is granted n2, and uid-p may have been granted n1", how, one.Ticket.ID.Name)
			}
		}
	}
}

// A ticket is granted at n1, placed at n2 meanwhile, and granted there. The first grant fails only then: nothing follows
// from that for the second one.
func TestOlderGrantFailsLate(t *testing.T) {
	csiAt := func(n ledger.NodeName) ledger.Event {
		return ledger.NodeDrivers{Node: n, Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 4, NodeID: string(n)}}}
	}
	version := 100
	m := ticket("p", "n1", ledger.TypeManual, "a")
	m.Wherever = true
	p := newPlayer(m, ledger.Complete{}, node("1"), csiAt("n2"), csiAt("n3"),
		node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n2", "n2" }), node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n3", "n3" }))
	answer := func(task Task, mv Move, r Result) (Task, Move) {
		a := Answer{Result: r}
		if mv.Send.Do == PutHold && r == Done {
			h := mv.Send.Fact.(ledger.HoldSeen)
			version++
			h.Hold.Version = strconv.Itoa(version)
			p.ledger.Apply(p.now, h)
			a.Facts = []ledger.Event{h}
		}
		task, mv = p.memory.Answer(task, a, p.ledger.Snapshot(), p.now)
		for _, e := range mv.Tell {
			p.ledger.Apply(p.now, e)
		}
		return task, mv
	}
	// n1's queue grants p: the hold is written, the status is on its way.
	a, am := p.memory.Next(p.announced(decided(p, m.ID)), p.ledger.Snapshot(), p.now)
	a, am = answer(a, am, Done)
	// n1 is cordoned, and p is placed at n2: that write wins.
	p.ledger.Apply(p.now, node("2", func(n *ledger.NodeState) { n.Draining = true }))
	moves, due := Due(arbiter.Arbiter{}, p.ledger.Snapshot(), p.ledger.Snapshot().Ticket(m.ID), p.now)
	if !due || moves.Commit.Node != "n2" {
		t.Fatalf("not moved: %t %+v", due, moves.Commit)
	}
	k := m
	k.Node, k.Version = "n2", "2"
	p.ledger.Apply(p.now, k)
	a, am = answer(a, am, Conflict) // A reads the ticket
	// n2's queue grants p: the hold is written, the status is on its way.
	b, bm := p.memory.Next(p.announced(decided(p, m.ID)), p.ledger.Snapshot(), p.now)
	_, bm = answer(b, bm, Done)
	if bm.Send == nil || bm.Send.Do != DecideTicket || bm.Send.Phase != ledger.TicketGranted || bm.Send.Version != "2" {
		t.Fatalf("B sends %+v", bm)
	}
	answer(a, am, Unknown) // the read of A fails
	q := ticket("q", "n3", ledger.TypeManual, "a")
	q.Created = -5
	p.ledger.Apply(p.now, q)
	d := decided(p, q.ID)
	if d.Ruling == Grant {
		t.Error("the volume is granted to n3, too, while its grant to n2 is on its way")
	}
}

// A pod asks for a volume at the node that has it. A ticket in doubt at another node can't be informed,
// since its status is refused: the hold names the volume's holder, so that the ticket keeps no pod
// away.
func TestTicketInDoubtBesideAHolder(t *testing.T) {
	p := newPlayer(node("1"), node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n2", "n2" }),
		ledger.NodeDrivers{Node: "n2", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 4, NodeID: "n2"}}},
		pod("p", "n2", "a"), pod("q", "", "a"), ledger.Complete{})
	p.settle(t, arbiter.Arbiter{}, disk, "1")
	x, q := ticket("x", "n1", ledger.TypeBackup, "a"), ticket("q", "n2", ledger.TypeManual, "a")
	p.ledger.Apply(p.now, x)
	p.ledger.Apply(p.now, q)
	p.ledger.Apply(p.now, ledger.TicketInDoubt{ID: x.ID, UID: x.UID})
	if d := decided(p, q.ID); d.Ruling != Grant {
		t.Errorf("ruling %d: %s", d.Ruling, d.Verdict.First().Message())
	}
}
