// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// lostGrant has the one ticket at n1 granted, with some holds, and neither the answer nor that of the read after it arrives.
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

// The grant of a ticket for a claim that is not bound yet is carried out; neither its answer nor that of the read after it
// arrives. The claim is bound. Somebody who ranks before asks for the volume at another node.
func TestBoundClaimOfATicketInDoubt(t *testing.T) {
	key := ledger.ClaimKey{Namespace: "s", Name: "u"}
	unbound := ledger.Claim{Key: key, UID: "u", Version: "1", Class: "c", Access: ledger.AccessNode}
	p := newPlayer(pod("p", "", "u"), ledger.Driver{Name: driver, Version: "1", AttachRequired: true},
		ledger.StorageClass{Name: "c", Version: "1", Driver: driver, WaitForFirst: true},
		unbound, ticket("p", "n1", ledger.TypePod, "u"), ledger.Complete{},
		ledger.NodeDrivers{Node: "n2", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 4, NodeID: "n2"}}})
	lostGrant(t, p, 0)
	q := ticket("q", "n2", ledger.TypePod, "u")
	q.Created = -1
	p.ledger.Apply(p.now, pod("q", "", "u"))
	p.ledger.Apply(p.now, q)
	d, _ := Round(arbiter.Arbiter{}, p.ledger.Snapshot(), "n2", p.now, nil)
	if d[0].Ruling == Grant {
		t.Fatal("before the claim is bound")
	}
	p.ledger.Apply(p.now, ledger.PersistentVolume{Name: "pu", Version: "2", Volume: ledger.VolumeID{Driver: driver, Handle: "u"}, Access: ledger.AccessNode, Claim: key})
	unbound.Version, unbound.Bound, unbound.PersistentVolume = "2", true, "pu"
	p.ledger.Apply(p.now, unbound)
	d, _ = Round(arbiter.Arbiter{}, p.ledger.Snapshot(), "n2", p.now, nil)
	if d[0].Ruling == Grant {
		t.Errorf("the exclusive volume that n1 may have been granted is granted to n2; p is in doubt: %t", p.ledger.Snapshot().Ticket(ticket("p", "n1", ledger.TypePod).ID).InDoubt)
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
