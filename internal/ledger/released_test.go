// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A late watch may still show the ticket: it takes no slot. Then the name is free.
func TestReleasedTicketDoesNotComeBack(t *testing.T) {
	now := time.Unix(1, 0)
	id, volume := ledger.TicketID{Namespace: "ns", Name: "p"}, ledger.VolumeID{Driver: "d", Handle: "h"}
	ticket := func(uid, version string) ledger.Ticket {
		return ledger.Ticket{ID: id, UID: uid, Version: version, Type: ledger.TypeManual, Node: "n1",
			Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "c"}}}
	}
	l := ledger.New()
	key := ledger.ClaimKey{Namespace: "ns", Name: "c"}
	for _, e := range []ledger.Event{
		ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: volume, Access: ledger.AccessNode, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "2", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode},
		ledger.Pod{UID: "p", Namespace: "ns", Name: "p", Version: "3"},
		ticket("first", "4"),
	} {
		l.Apply(now, e)
	}
	counts := func() (known bool, users int, slots int32) {
		s := l.Snapshot()
		if p := s.Volume(volume).OnNode("n1"); p != nil {
			users = len(p.Users)
		}
		return s.Ticket(id) != nil, users, s.Node("n1").Driver("d").Used
	}
	if known, users, slots := counts(); !known || users != 1 || slots != 1 {
		t.Fatalf("granted: known %t, users %d, slots %d", known, users, slots)
	}
	l.Apply(now, ledger.TicketReleased{ID: id, UID: "first"})
	l.Apply(now, ticket("first", "5"))
	if known, users, slots := counts(); known || users != 0 || slots != 0 {
		t.Errorf("it is back: known %t, users %d, slots %d", known, users, slots)
	}
	l.Apply(now, ledger.TicketGone{ID: id})
	l.Apply(now, ticket("second", "6"))
	if known, users, slots := counts(); !known || users != 1 || slots != 1 {
		t.Errorf("the next ticket of the name: known %t, users %d, slots %d", known, users, slots)
	}
}

func TestGoneAfterAnotherWasReleased(t *testing.T) {
	now, id := time.Unix(1, 0), ledger.TicketID{Namespace: "ns", Name: "t"}
	l := ledger.New()
	for _, e := range []ledger.Event{
		ledger.Ticket{ID: id, UID: "first", Version: "1", Type: ledger.TypeManual, Node: "n"}, ledger.TicketReleased{ID: id, UID: "first"},
		ledger.Ticket{ID: id, UID: "second", Version: "2", Type: ledger.TypeManual, Node: "n"}, ledger.TicketGone{ID: id},
	} {
		l.Apply(now, e)
	}
	if k := l.Snapshot().Ticket(id); k != nil {
		t.Errorf("it still counts: %+v", k)
	}
}

// The controller hears of an earlier release's ticket, to delete it.
func TestTicketsOfPodsClaimNothing(t *testing.T) {
	id, pv := ledger.TicketID{Namespace: "ns", Name: "uid"}, ledger.PersistentVolume{Name: "pv", Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: "h"}}
	l := ledger.New()
	l.Apply(time.Unix(1, 0), pv)
	touched := l.Apply(time.Unix(1, 0), ledger.Ticket{ID: id, UID: "t", Version: "2", Type: "Pod", Node: "n1", Phase: ledger.TicketGranted,
		Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}})
	if s := l.Snapshot(); s.Ticket(id) != nil || s.Volume(pv.Volume).OnNode("n1") != nil {
		t.Error("it is taken in")
	}
	if len(touched.Tickets) != 1 || touched.Tickets[0] != id {
		t.Errorf("the controller hears of %v", touched.Tickets)
	}
}
