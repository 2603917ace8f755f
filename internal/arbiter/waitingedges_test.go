// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Who is asked before its volumes are taken, and for how long: a granted ticket that has had its volumes,
// and that gives way to others or to a drain.
func TestYieldNotice(t *testing.T) {
	minute := time.Minute
	for name, test := range map[string]struct {
		kind    ledger.TicketType
		onDrain ledger.OnDrain
		phase   ledger.TicketPhase
		had     bool
		policy  *time.Duration
		want    time.Duration
	}{
		"it yields":                     {ledger.TypeBackup, ledger.StayOnDrain, ledger.TicketGranted, true, nil, DefaultYieldNotice},
		"by its policy":                 {ledger.TypeBackup, ledger.StayOnDrain, ledger.TicketGranted, true, &minute, minute},
		"it does not":                   {ledger.TypeManual, ledger.StayOnDrain, ledger.TicketGranted, true, nil, 0},
		"it moves":                      {ledger.TypeManual, ledger.MoveOnDrain, ledger.TicketGranted, true, nil, DefaultYieldNotice},
		"it yields, and moves":          {ledger.TypeBackup, ledger.MoveOnDrain, ledger.TicketGranted, true, nil, DefaultYieldNotice},
		"it ends, and does not yield":   {ledger.TypeManual, ledger.EndOnDrain, ledger.TicketGranted, true, nil, 0},
		"it has not had its volumes":    {ledger.TypeBackup, ledger.StayOnDrain, ledger.TicketGranted, false, nil, 0},
		"it is not granted":             {ledger.TypeBackup, ledger.StayOnDrain, ledger.TicketPending, true, nil, 0},
		"not granted, and it moves":     {ledger.TypeManual, ledger.MoveOnDrain, ledger.TicketPending, true, nil, 0},
		"it moves, and had no volumes":  {ledger.TypeManual, ledger.MoveOnDrain, ledger.TicketGranted, false, nil, 0},
		"it moves by its policy's time": {ledger.TypeManual, ledger.MoveOnDrain, ledger.TicketGranted, true, &minute, minute},
	} {
		k := ledger.Ticket{
			ID: ledger.TicketID{Namespace: "shop", Name: "k"}, UID: "k", Version: "1", Type: test.kind, OnDrain: test.onDrain, Node: "well", Phase: test.phase,
			Volumes: []ledger.TicketVolume{{Claim: "data"}},
		}
		if test.had {
			k.SatisfiedSince = 1
		}
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, ledger.Policy{Name: "p", Version: "1", Driver: "d", YieldNotice: test.policy}, k)
		if got := YieldNotice(p.snapshot, p.snapshot.Ticket(k.ID)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Whose grant comes before a bind at once: who has been told why it waits, who may have been granted by the
// leader before, and who names a claim of which it is not known yet where it leads.
func TestWaitsFirst(t *testing.T) {
	asks := func(change func(*ledger.Ticket)) ledger.Ticket {
		k := ledger.Ticket{
			ID: ledger.TicketID{Namespace: "shop", Name: "k"}, UID: "k", Version: "1", Type: ledger.TypeManual, Node: "well",
			Volumes: []ledger.TicketVolume{{Claim: "data"}},
		}
		change(&k)
		return k
	}
	claim := func(name string) func(*ledger.Ticket) {
		return func(k *ledger.Ticket) { k.Volumes[0].Claim = name }
	}
	other := ledger.ClaimKey{Namespace: "shop", Name: "other"}
	for name, test := range map[string]struct {
		ticket ledger.Ticket
		facts  []ledger.Event
		want   bool
	}{
		"nobody has decided on it": {asks(func(*ledger.Ticket) {}), nil, false},
		"it was told why it waits": {asks(func(k *ledger.Ticket) { k.Reason = string(NoFreeSlot) }), nil, true},
		"it may be granted":        {asks(func(k *ledger.Ticket) { k.InDoubt = true }), nil, true},
		"its claim is not there":   {asks(claim("nothing")), nil, true},
		"its claim is bound to a PersistentVolume that was not seen": {asks(claim("other")), []ledger.Event{ledger.Claim{Key: other, UID: "other", Version: "1", PersistentVolume: "other", Bound: true, Access: ledger.AccessNode}}, true},
		"its claim is not bound":                                     {asks(claim("other")), []ledger.Event{ledger.Claim{Key: other, UID: "other", Version: "1"}}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append(test.facts, test.ticket)...)
		k := p.snapshot.Ticket(test.ticket.ID)
		if test.ticket.InDoubt {
			in := *k
			in.InDoubt, k = true, &in
		}
		if got := waitsFirst(p.snapshot, k); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !waitsFirst(ledger.Snapshot{}, nil) {
		t.Error("a ticket that is not known does not wait first")
	}
}
