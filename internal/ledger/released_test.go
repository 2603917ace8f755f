// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A ghost's pod is read, and found unbound. Before the answer is there, the
// pod's scheduler has written another ticket, of the same name: that one must
// not end with the ghost.
func TestReleaseIsOfOneTicketOnly(t *testing.T) {
	now := time.Unix(1, 0)
	id := ledger.TicketID{Namespace: "ns", Name: "p"}
	ticket := func(uid, version string) ledger.Ticket {
		return ledger.Ticket{ID: id, UID: uid, Version: version, Type: ledger.TypePod, Node: "n1", Pod: "p"}
	}
	l := ledger.New()
	l.Apply(now, ledger.Pod{UID: "p", Namespace: "ns", Name: "p", Version: "1"})
	l.Apply(now, ticket("first", "2"))
	l.Apply(now, ledger.TicketGone{ID: id})
	if k := l.Snapshot().Ticket(id); k == nil || !k.Ghost {
		t.Fatalf("no ghost is left: %v", k)
	}
	l.Apply(now, ticket("second", "3"))
	l.Apply(now, ledger.TicketReleased{ID: id, UID: "first"})
	if k := l.Snapshot().Ticket(id); k == nil || k.UID != "second" || k.Ghost {
		t.Errorf("the second ticket is not counted: %v", k)
	}
	l.Apply(now, ledger.TicketReleased{ID: id, UID: "second"})
	if k := l.Snapshot().Ticket(id); k != nil {
		t.Errorf("the second ticket still counts: %v", k)
	}
}

// A ticket is named by the UID of another namespace's pod, which is bound: that pod does not count for it, so that
// it lives on as a ghost when it goes, and its inline volumes are not that pod's.
func TestATicketHasNoPodOfAnotherNamespace(t *testing.T) {
	now, inline := time.Unix(1, 0), ledger.VolumeID{Driver: "d", Handle: "h"}
	for _, namespace := range []string{"shop", "bank"} {
		ticket := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "p"}, UID: "t", Version: "2", Type: ledger.TypePod, Node: "n1", Pod: "p",
			Volumes: []ledger.TicketVolume{{PodVolume: "v"}}}
		l := ledger.New()
		l.Apply(now, ledger.Pod{UID: "p", Namespace: namespace, Name: "p", Version: "1", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Inline: inline}}})
		l.Apply(now, ticket)
		s, own := l.Snapshot(), namespace == ticket.ID.Namespace
		if pod, uid := s.PodOf(&ticket), s.PodUIDOf(&ticket); (pod != nil) != own || (uid == "p") != own {
			t.Errorf("in namespace %s the ticket reserves for %v, UID %q", namespace, pod, uid)
		}
		if id, _ := s.ResolveTicket(&ticket, ticket.Volumes[0]); (id == inline) != own {
			t.Errorf("in namespace %s the ticket's volume leads to %v", namespace, id)
		}
		l.Apply(now, ledger.TicketGone{ID: ticket.ID})
		if k := l.Snapshot().Ticket(ticket.ID); (k == nil) != own || k != nil && !k.Ghost {
			t.Errorf("in namespace %s it is left: %v", namespace, k)
		}
	}
	unseen := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "q"}, Type: ledger.TypePod, Pod: "q"}
	if uid := ledger.New().Snapshot().PodUIDOf(&unseen); uid != "q" {
		t.Errorf("a pod that is not seen yet is %q", uid)
	}
}

// This process has deleted a ticket, and a watch that is behind still shows it, with
// a write that came before the deletion: it takes its slot and its volume no more.
// When the watch has caught up, the name is free for the next ticket.
func TestReleasedTicketDoesNotComeBack(t *testing.T) {
	now := time.Unix(1, 0)
	id, volume := ledger.TicketID{Namespace: "ns", Name: "p"}, ledger.VolumeID{Driver: "d", Handle: "h"}
	ticket := func(uid, version string) ledger.Ticket {
		return ledger.Ticket{ID: id, UID: uid, Version: version, Type: ledger.TypePod, Node: "n1", Pod: "p",
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
		if p := s.Volume(volume).NodeVolume("n1"); p != nil {
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

// This process has deleted a ticket, and a watch that has missed its end shows another one
// of its name: that this one has gone is heard of.
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

// A ticket that was in flight and is forgotten may be assumed again.
func TestAssumedAgain(t *testing.T) {
	now, id := time.Unix(1, 0), ledger.TicketID{Namespace: "ns", Name: "p"}
	l := ledger.New()
	for range 2 {
		if err := l.Assume(now, ledger.Ticket{ID: id, Type: ledger.TypePod, Pod: "p", Node: "n"}); err != nil {
			t.Fatal(err)
		}
		if l.Snapshot().Ticket(id) == nil {
			t.Error("it does not count")
		}
		l.Forget(now, id)
		if l.Snapshot().Ticket(id) != nil {
			t.Error("it counts after it was forgotten")
		}
	}
}
