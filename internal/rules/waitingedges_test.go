// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A granted ticket that has had its volumes, and yields to others or to a drain, is asked first, for the
// policy's time.
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
