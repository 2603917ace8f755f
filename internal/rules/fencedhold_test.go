// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// Readers know Leases at other times than the writer: no hold causes a panic.
func TestExplainOfAFencedHold(t *testing.T) {
	explain := func(t *testing.T, s *script, snap ledger.Snapshot) {
		ticket, _ := s.ticketNamed("keep")
		for _, need := range rules.TicketRequest(snap, snap.Ticket(ticket.ID)).Needs {
			t.Log(s.arb.Explain(snap, need, "worker-1", s.Now))
		}
	}
	gone := []string{
		"node worker-1 driver=disk limit=4", "pv pv-1 claim=data", "pod db claim=data", "bind pod=db node=worker-1", "run",
		"kubelet worker-1 down", "node worker-1 ready=unknown", "delete pod=db force", "run", "advance 6m", "run",
	}
	t.Run("by hand", func(t *testing.T) {
		s := newScript()
		for _, line := range append(gone, "ticket keep node=worker-1 claims=data") {
			s.command(line)
		}
		seen := list[ledger.HoldSeen](s.cluster, world.Holds)[0]
		seen.Hold.Node, seen.Hold.State, seen.Hold.Reason = "worker-1", ledger.HoldDetachPending, rules.NodeUnreachable
		s.put(seen)
		explain(t, s, s.snapshot())
	})
	t.Run("by a Lease that was not read", func(t *testing.T) {
		s := newScript()
		for _, line := range append(gone, "kubelet worker-1 renews", "advance 1s", "pod db2 claim=data",
			"node worker-2 driver=disk limit=4", "bind pod=db2 node=worker-2", "run", "ticket keep node=worker-1 claims=data") {
			s.command(line)
		}
		t.Log(s.command("show volume=pv-1"))
		reader := ledger.New() // as kubectl's
		for _, k := range world.AllKinds() {
			for _, e := range s.List(k) {
				reader.Apply(s.Now, e)
			}
		}
		reader.Apply(s.Now, ledger.Complete{})
		explain(t, s, reader.Snapshot())
	})
}
