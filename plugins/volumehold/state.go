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

// cycleState is what PreFilter hands on to the rest of one scheduling cycle:
// one immutable snapshot, so that no two reads in one decision disagree, and
// the pods that a dry run adds and removes.
type cycleState struct {
	snapshot ledger.Snapshot // without the delta
	request  rules.Request
	holder   ledger.NodeName // the only node that is looked at; empty for all
	delta    ledger.Delta
	seen     *reasons          // of refusals in this cycle; nil in a dry run
	refused  *binding.Refusals // of nodes in this cycle; nil in a dry run
	freeing  func() freeing    // a slot that comes free for the pod: asked for in a preemption only, once for each PreFilter
	evicting bool              // a dry run of a preemption
	promised *atomic.Bool      // a node was refused only for pods that are nominated to it; shared by clones
	placed   bool              // Reserve has let the pod have a node
}

// Clone copies what AddPod and RemovePod change.
func (c *cycleState) Clone() fwk.StateData {
	clone := *c
	clone.seen, clone.refused = nil, nil
	clone.delta = *c.delta.Clone()
	return &clone
}

// view is the snapshot as the dry run sees it.
func (c *cycleState) view() ledger.Snapshot {
	if c.delta.Empty() {
		return c.snapshot
	}
	return c.snapshot.With(&c.delta)
}

// fromNodes says whether the cycle's nodes tell of a pod, and not the delta: see inGroupCycle.
func (c *cycleState) fromNodes(state fwk.CycleState, uid string) bool {
	return state.IsPodGroupSchedulingCycle() && isBound(c.snapshot, uid)
}

// stateOf returns the state that PreFilter left, or nil where it left none, since it has
// skipped the pod, or has refused it before it came to nodes. A state says nothing of attachments: a volume that is not
// attached may need a slot, or be for one pod only.
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
