// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A fence of a machine with a Node that this process never saw counts, too.
func TestFenceOfANodeThatNobodyKnows(t *testing.T) {
	hold := ledger.Hold{Fences: []ledger.Fence{{Node: "deleted", NodeUID: "o", SystemUUID: "y", BootID: "y", InUse: true}}}
	ticket := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "m", Version: "1", Type: ledger.TypeSalvage, Node: ledger.Detached,
		Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "data"}},
	}
	p := plannerOf(t, Arbiter{}, ledger.Detached, hold, ledger.Complete{}, ledger.TookOver{}, nodeAs("dead"), ticket)
	if v := (Arbiter{}).Satisfied(p.snapshot, p.snapshot.Ticket(ticket.ID), auditTime); v.Allowed() {
		t.Error("it is told that the volume is at no node")
	}
}
