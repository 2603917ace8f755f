// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

const stateKey fwk.StateKey = Name

// cycleState passes PreFilter's results through one cycle: an immutable snapshot, so that all reads agree,
// and a dry run's delta.
type cycleState struct {
	snapshot ledger.Snapshot // without the delta
	request  rules.Request
	holder   ledger.NodeName // the only node; empty: all
	delta    ledger.Delta
	seen     *reasons          // nil in a dry run
	refused  *binding.Refusals // nil in a dry run
	freeing  func() freeing    // called only in a preemption, once per PreFilter
	evicting bool              // in a preemption's dry run
	promised *atomic.Bool      // a node was refused only for its nominated pods; shared by clones
	placed   bool              // Reserve has given the pod a node
}

func (c *cycleState) Clone() fwk.StateData {
	clone := *c
	clone.seen, clone.refused = nil, nil
	clone.delta = *c.delta.Clone()
	return &clone
}

func (c *cycleState) view() ledger.Snapshot {
	if c.delta.Empty() {
		return c.snapshot
	}
	return c.snapshot.With(&c.delta)
}

// fromNodes says whether the cycle's nodes have a pod, and not the delta: see inGroupCycle.
func (c *cycleState) fromNodes(state fwk.CycleState, uid string) bool {
	return state.IsPodGroupSchedulingCycle() && isBound(c.snapshot, uid)
}

// stateOf is nil if PreFilter has skipped or refused the pod. A state does not imply attachments: a volume
// may only need a slot, or be for one pod only.
func stateOf(state fwk.CycleState) *cycleState {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	c, ok := data.(*cycleState)
	if !ok {
		return nil
	}
	return c
}
