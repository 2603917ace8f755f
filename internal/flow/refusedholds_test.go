// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// lookWithPauses decides on a node's pending tickets, as the controller does: a ticket with a failed
// write pauses.
func (p *player) lookWithPauses(t *testing.T, n ledger.NodeName, pauses *TicketPauses) (tried []string) {
	t.Helper()
	list, _ := Round(arbiter.Arbiter{}, p.ledger.Snapshot(), n, p.now, func(k *ledger.Ticket) time.Duration { return pauses.Left(k, p.now) })
	for _, e := range Announce(list) {
		p.ledger.Apply(p.now, e)
	}
	for _, d := range list {
		end := Finished
		if p.carryOut(t, Decide(d), Done); d.Ruling == Grant && p.ledger.Snapshot().Ticket(d.Ticket.ID).Phase != ledger.TicketGranted {
			end = Failed
			tried = append(tried, d.Ticket.ID.Name)
		}
		pauses.End(d, end, func(d time.Duration) time.Duration { return d }, p.now)
	}
	return tried
}

// The API server refuses the hold of one volume for good. The ticket that asks for it and ranks first
// is informed, and keeps neither its other volume from a ticket at another node, nor the last slot of
// its own node from a pod. It is tried again after longer and longer pauses, and granted when the hold
// is refused no more.
func TestTicketOfARefusedHoldKeepsNothing(t *testing.T) {
	drivers := func(n ledger.NodeName, limit int32) ledger.NodeDrivers {
		return ledger.NodeDrivers{Node: n, Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: limit, NodeID: string(n)}}}
	}
	p := newPlayer(pod("beside", "", "c"), drivers("n2", 2), ledger.Complete{})
	p.refused = map[ledger.VolumeID]bool{{Driver: driver, Handle: "b"}: true}
	first := ticket("first", "n1", ledger.TypeManual, "a", "b")
	elsewhere, beside := ticket("elsewhere", "n2", ledger.TypeManual, "a"), ticket("beside", "n1", ledger.TypeManual, "c")
	elsewhere.Created, beside.Created = 9, 9
	p.ledger.Apply(p.now, first)
	var pauses TicketPauses
	for range 3 {
		p.lookWithPauses(t, "n1", &pauses)
	}
	k := p.ledger.Snapshot().Ticket(first.ID)
	if k.Reason != string(arbiter.HoldRefused) || k.KeepsSlots() || !strings.Contains(arbiter.WithoutHold(p.ledger.Snapshot(), k, ledger.VolumeID{Driver: driver, Handle: "b"}).First().Message(), "refuses") {
		t.Errorf("the ticket is told %q, and keeps slots: %t", k.Reason, k.KeepsSlots())
	}
	for _, k := range []ledger.Ticket{elsewhere, beside} {
		p.ledger.Apply(p.now, k)
		if d := decided(p, k.ID); d.Ruling != Grant {
			t.Errorf("ticket %s: ruling %d, %s", k.ID, d.Ruling, d.Verdict.First().Message())
		}
	}
	for _, n := range []ledger.NodeName{"n1", "n2", "n1"} {
		p.lookWithPauses(t, n, &pauses)
	}
	for _, k := range []ledger.Ticket{elsewhere, beside} {
		if k := p.ledger.Snapshot().Ticket(k.ID); k.Phase != ledger.TicketGranted {
			t.Errorf("ticket %s is %s: %s", k.ID, k.Phase, k.Reason)
		}
	}
}

// A ticket with a refused hold keeps no free slot either while it lacks another slot: a pod that comes
// meanwhile gets it.
func TestTicketOfARefusedHoldKeepsNoFreeSlot(t *testing.T) {
	p := newPlayer(pod("one", "", "c"), pod("two", "", "d"),
		ledger.NodeDrivers{Node: "n1", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2, NodeID: "n1"}}},
		ledger.PersistentVolume{Name: "d", Version: "1", Volume: ledger.VolumeID{Driver: driver, Handle: "d"}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: "d"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "d"}, UID: "d", Version: "1", PersistentVolume: "d", Bound: true, Access: ledger.AccessNode},
		ledger.Complete{})
	p.refused = map[ledger.VolumeID]bool{{Driver: driver, Handle: "b"}: true}
	first := ticket("first", "n1", ledger.TypeManual, "a", "b")
	one, two := ticket("one", "n1", ledger.TypeManual, "c"), ticket("two", "n1", ledger.TypeManual, "d")
	one.Created, two.Created = 9, 10
	var pauses TicketPauses
	for _, k := range []ledger.Ticket{first, one, two} {
		p.ledger.Apply(p.now, k)
		p.lookWithPauses(t, "n1", &pauses)
	}
	if k := p.ledger.Snapshot().Ticket(first.ID); k.Reason != string(arbiter.HoldRefused) {
		t.Errorf("the ticket is told %q", k.Reason)
	}
	for _, k := range []ledger.Ticket{one, two} {
		if k := p.ledger.Snapshot().Ticket(k.ID); k.Phase != ledger.TicketGranted {
			t.Errorf("ticket %s is %s: %s", k.ID, k.Phase, k.Reason)
		}
	}
}

// A ticket with a refused hold is tried again after pauses that grow to a minute, though its status
// changes each time; it is granted within a minute after the hold is accepted.
func TestRefusedHoldIsTriedLessAndLessOften(t *testing.T) {
	p := newPlayer(ticket("p", "n1", ledger.TypeManual, "a"), ledger.Complete{})
	p.refused = map[ledger.VolumeID]bool{disk: true}
	id := ticket("p", "n1", ledger.TypeManual).ID
	var pauses TicketPauses
	tries := 0
	for range 10 {
		tries += len(p.lookWithPauses(t, "n1", &pauses))
	}
	if k := p.ledger.Snapshot().Ticket(id); tries != 1 || k.Reason != string(arbiter.HoldRefused) {
		t.Errorf("it is tried %d times at one instant, and told %q", tries, k.Reason)
	}
	pass := func(long time.Duration) (tries int) {
		for until := p.now.Add(long); p.now.Before(until); p.now = p.now.Add(50 * time.Millisecond) {
			tries += len(p.lookWithPauses(t, "n1", &pauses))
		}
		return tries
	}
	if tries := pass(2 * longestFailed); tries < 8 || tries > 12 {
		t.Errorf("it is tried %d times within two minutes", tries)
	}
	if tries := pass(10 * longestFailed); tries < 9 || tries > 11 {
		t.Errorf("it is tried %d times within the next ten minutes", tries)
	}
	p.refused = nil
	pass(longestFailed + time.Second)
	if k := p.ledger.Snapshot().Ticket(id); k.Phase != ledger.TicketGranted || pauses.Len() > 0 {
		t.Errorf("it is %s (%s) when the hold is let pass, and %d pauses are kept", k.Phase, k.Reason, pauses.Len())
	}
}

// A ticket was told for long that a hold is refused. It asks anew, and the write of the hold is answered with 429 and not
// refused any more: it keeps its volumes from others then, as any ticket that asks, and is tried again a moment later.
func TestRefusedHoldThenTooManyRequests(t *testing.T) {
	p := newPlayer(ticket("p", "n1", ledger.TypeManual, "a"), ledger.Complete{})
	p.refused = map[ledger.VolumeID]bool{disk: true}
	id := ticket("p", "n1", ledger.TypeManual).ID
	var pauses TicketPauses
	is := func(code ledger.Code) bool { return p.ledger.Snapshot().Ticket(id).Reason == string(code) }
	for until := p.now.Add(10 * longestFailed); p.now.Before(until) || !is(arbiter.HoldRefused); p.now = p.now.Add(50 * time.Millisecond) {
		p.lookWithPauses(t, "n1", &pauses)
	}
	for p.refused, p.busy = nil, true; !is(arbiter.NotGranted) || len(p.lookWithPauses(t, "n1", &pauses)) == 0; p.now = p.now.Add(50 * time.Millisecond) {
		p.lookWithPauses(t, "n1", &pauses)
	}
	p.busy = false
	began := p.now
	for p.ledger.Snapshot().Ticket(id).Phase != ledger.TicketGranted {
		p.now = p.now.Add(50 * time.Millisecond)
		p.lookWithPauses(t, "n1", &pauses)
	}
	if took := p.now.Sub(began); took > time.Second {
		t.Errorf("it asks for %s without being tried", took)
	}
}
