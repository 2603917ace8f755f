// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A few of each namespace at a time, the oldest first.
func TestEndsOfANamespace(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
	for i := range 3 * MaxPerNamespace {
		name := fmt.Sprintf("forged%02d", i)
		s.tickets = append(s.tickets, Ticket{ID: ledger.TicketID{Namespace: "evil", Name: name}, UID: name, Created: s.now.Add(-time.Duration(i) * time.Second)})
	}
	s.tickets = append(s.tickets, Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "other"}, UID: "other", Created: s.now})
	plan := s.decide()
	if len(plan.End) != MaxPerNamespace+1 || plan.End[0].UID != "forged47" || plan.End[MaxPerNamespace].UID != "other" || plan.Again != time.Second {
		t.Errorf("ended %d: %+v, again after %s", len(plan.End), plan.End, plan.Again)
	}
}

func (s *scene) bare(granted ledger.TicketPhase) {
	s.t.Helper()
	for _, k := range s.tickets {
		s.apply(ledger.Ticket{ID: k.ID, UID: k.UID, Version: s.next(), Type: k.Operation.TicketType(), Wherever: true, Node: "n", Phase: granted,
			Volumes: []ledger.TicketVolume{{Claim: "a", ClaimUID: "uid-a"}}})
	}
	s.tickets = nil
}

// The pause comes after the ticket's end.
func TestLabelTakenOff(t *testing.T) {
	for _, seen := range []bool{true, false} {
		s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
		s.works = []Work{snapshotOf("x", "a")}
		s.decide()
		id := s.tickets[0].ID
		if seen {
			s.decide()
		}
		s.bare(ledger.TicketPending)
		s.decide()
		s.bare(ledger.TicketGranted)
		s.apply(ledger.Ticket{ID: id, UID: s.ledger.Snapshot().Ticket(id).UID, Version: s.next(), Type: ledger.TypeSnapshot, Wherever: true, Node: "n", Phase: ledger.TicketGranted,
			Volumes: []ledger.TicketVolume{{Claim: "a", ClaimUID: "uid-a"}}})
		if plan := s.decide(); codes(plan) != "x "+ReasonNameTaken {
			t.Errorf("told %q", codes(plan))
		}
		s.works = []Work{snapshotOf("y", "a")}
		if plan := s.decide(); codes(plan) != "y "+ReasonNameTaken || len(plan.Make) > 0 {
			t.Errorf("another snapshot of the volume: told %q, made %v", codes(plan), plan.Make)
		}
		s.after(time.Minute)
		s.ledger.Apply(s.now, ledger.TicketGone{ID: id})
		if plan := s.decide(); codes(plan) != "y "+ReasonPaused || plan.Again != time.Minute {
			t.Errorf("when it is gone: told %q, again after %s", codes(plan), plan.Again)
		}
	}
}

func TestBoundWithoutLabels(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationExpansion)})
	for i := range 4 * MaxPerNamespace {
		name := fmt.Sprintf("v%02d", i)
		s.volume(name)
		s.works = append(s.works, expand(name))
	}
	for range 4 {
		s.decide()
		s.bare(ledger.TicketPending)
	}
	made := 0
	for range s.ledger.Snapshot().Tickets() {
		made++
	}
	if made != MaxPerNamespace {
		t.Errorf("%d tickets", made)
	}
}

func TestOwnerOfAnotherName(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
	s.works = []Work{snapshotOf("x", "a")}
	s.decide()
	s.tickets[0].Owner.Name, s.tickets[0].UID = "other", "forged"
	if plan := s.decide(); codes(plan) != "x "+ReasonNameTaken || len(plan.End) > 0 || len(plan.Make) > 0 {
		t.Errorf("told %q, ended %v, made %v", codes(plan), plan.End, plan.Make)
	}
}

func TestLongerThanItsTime(t *testing.T) {
	s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
	s.works = []Work{snapshotOf("x", "a")}
	s.decide()
	s.tickets[0].Spec.TTLSeconds = new(int64(2592000))
	s.grant()
	if plan := s.decide(); plan.Again != Timeout+patience {
		t.Errorf("again after %s", plan.Again)
	}
	s.after(Timeout + patience - 1)
	s.decide()
	s.has("shop/snapshot-uid-x")
	s.after(1)
	s.decide()
	s.has("")
	if plan := s.decide(); codes(plan) != "x "+ReasonPaused {
		t.Errorf("told %q", codes(plan))
	}
}

func (s *scene) also(namespace, name string) {
	pv, key := "pv-"+namespace+"-"+name, ledger.ClaimKey{Namespace: namespace, Name: name}
	s.apply(ledger.PersistentVolume{Name: pv, UID: pv, Version: s.next(), Class: "fast", Volume: ledger.VolumeID{Driver: driver, Handle: name}, Claim: key, ClaimUID: "uid-" + pv})
	s.apply(ledger.Claim{Key: key, UID: "uid-" + pv, Version: s.next(), Class: "fast", PersistentVolume: pv, Bound: true})
}

func TestSeveralPersistentVolumes(t *testing.T) {
	for namespace, want := range map[string]string{"shop": "shop/snapshot-uid-x", "aaa": "aaa/snapshot-uid-x", "evil": "", "": "shop/snapshot-uid-x"} {
		s := newScene(t, ledger.Policy{DetachFor: only(ledger.OperationSnapshot)})
		s.also("aaa", "a")
		w := snapshotOf("x", "a")
		w.Told.Namespace = namespace
		s.works = []Work{w}
		told := ""
		if want == "" {
			told = "x " + ReasonOutside
		}
		if got := codes(s.decide()); got != told {
			t.Errorf("%q: told %q, want %q", namespace, got, told)
		}
		s.has(want)
	}
}
