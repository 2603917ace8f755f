// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Weights are the preferences of Rank; only their proportions matter. Zero means DefaultWeights.
type Weights struct {
	Held    int64 // the node with the volume for a user
	Near    int64 // a node where the volume still is
	Balance int64 // free slots
}

// DefaultWeights prefer the volume's location to free room.
func DefaultWeights() Weights { return Weights{Held: 100, Near: 60, Balance: 20} }

// MaxRank is the best Rank, as in kube-scheduler.
const MaxRank = 100

// Rank scores a node for a request from 0 to MaxRank (best), by the volumes' location, then by free slots
// afterwards.
func (a Arbiter) Rank(s ledger.Snapshot, r Request, n ledger.NodeName, weights Weights) int64 {
	if weights == (Weights{}) {
		weights = DefaultWeights()
	}
	best := max(weights.Held, weights.Near) + weights.Balance
	if len(r.Needs) == 0 || best <= 0 {
		return 0
	}
	var sum int64
	for _, need := range r.Needs {
		if !s.AttachRequired(need.Volume.Driver) {
			continue // it is equally near to each node
		}
		sum += near(s, need, n, weights) + balance(s, n, need, weights)
	}
	return sum * MaxRank / (best * int64(len(r.Needs)))
}

func near(s ledger.Snapshot, need Need, n ledger.NodeName, w Weights) int64 {
	p := s.Volume(need.Volume).OnNode(n)
	switch {
	case p == nil:
		return 0
	case len(p.Users) > 0:
		return w.Held
	}
	if a := p.Canonical(); a != nil && !a.Deleting {
		return w.Near
	}
	return 0
}

// balance is the share of the driver's free slots at the node with the volume there.
func balance(s ledger.Snapshot, n ledger.NodeName, need Need, w Weights) int64 {
	node := s.Node(n)
	state := node.Driver(need.Volume.Driver)
	limit := Limit(state, PolicyFor(s, need.Volume.Driver, ""))
	switch {
	case !state.Registered || limit == 0:
		return 0
	case limit == ledger.NoLimit:
		return w.Balance
	}
	used := state.Taken()
	if !s.Volume(need.Volume).OnNode(n).TakesSlot() {
		used++
	}
	return w.Balance * int64(max(0, limit-used)) / int64(limit)
}
