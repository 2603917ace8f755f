// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// Each renewal is two seconds after the last, and a Node's condition may be set in between. A kubelet that
// reports to a Node that is not Ready has also renewed its Lease.

func (s *state) renew(n int) {
	if s.config.Leases {
		s.leased++
		s.machine(n).Renewed = s.w.Now.Add(time.Duration(2*s.leased) * time.Second)
	}
}

func (s *state) leaseMoves(list []move) []move {
	if !s.config.Leases {
		return list
	}
	known := s.leader.ledger.Snapshot()
	for i := 1; i <= nodes; i++ {
		n := known.Node(node(i))
		_, exists := s.w.Node(node(i)) // a Lease goes with its Node
		if n == nil || !n.Exists || n.Ready == ledger.ReadyTrue || !exists {
			continue
		}
		if n.RenewedAt.IsZero() || n.Renewed != s.machine(i).Renewed.UnixMicro() {
			list = append(list, move{"leader reads the Lease of " + string(n.Name), true, func(s *state) {
				s.leader.saw(s.w, s.w.Serve(readLease(node(i))).Facts...)
			}})
		}
	}
	return list
}

func readLease(n ledger.NodeName) world.Request {
	return world.Request{Do: world.GetObject, Kind: world.Leases, Key: string(n)}
}
