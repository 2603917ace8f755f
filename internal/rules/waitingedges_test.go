// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A granted ticket that yields is asked first.
func TestYieldNotice(t *testing.T) {
	for name, test := range map[string]struct {
		kind    ledger.TicketType
		onDrain ledger.OnDrain
		phase   ledger.TicketPhase
		had     bool
		want    time.Duration
	}{
		"it yields":                    {ledger.TypeBackup, ledger.StayOnDrain, ledger.TicketGranted, true, Notice},
		"it does not":                  {ledger.TypeManual, ledger.StayOnDrain, ledger.TicketGranted, true, 0},
		"it moves":                     {ledger.TypeManual, ledger.MoveOnDrain, ledger.TicketGranted, true, Notice},
		"it yields, and moves":         {ledger.TypeBackup, ledger.MoveOnDrain, ledger.TicketGranted, true, Notice},
		"it ends, and does not yield":  {ledger.TypeManual, ledger.EndOnDrain, ledger.TicketGranted, true, 0},
		"it has not had its volumes":   {ledger.TypeBackup, ledger.StayOnDrain, ledger.TicketGranted, false, 0},
		"it is not granted":            {ledger.TypeBackup, ledger.StayOnDrain, ledger.TicketPending, true, 0},
		"not granted, and it moves":    {ledger.TypeManual, ledger.MoveOnDrain, ledger.TicketPending, true, 0},
		"it moves, and had no volumes": {ledger.TypeManual, ledger.MoveOnDrain, ledger.TicketGranted, false, 0},
	} {
		k := ledger.Ticket{
			ID: ledger.TicketID{Namespace: "shop", Name: "k"}, UID: "k", Version: "1", Type: test.kind, OnDrain: test.onDrain, Node: "well", Phase: test.phase,
			Volumes: []ledger.TicketVolume{{Claim: "data"}},
		}
		if test.had {
			k.SatisfiedSince = 1
		}
		if got := YieldNotice(&k); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
