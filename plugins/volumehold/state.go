// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"maps"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

const stateKey fwk.StateKey = Name

// cycleState is what PreFilter hands on to the rest of one scheduling cycle:
// one immutable snapshot, so that no two reads in one decision disagree, and
// the pods that a dry run adds and removes.
type cycleState struct {
	snapshot ledger.Snapshot // without the delta
	request  arbiter.Request
	delta    ledger.Delta
}

// Clone copies what AddPod and RemovePod change.
func (c *cycleState) Clone() fwk.StateData {
	clone := *c
	clone.delta.Added = maps.Clone(c.delta.Added)
	clone.delta.Removed = maps.Clone(c.delta.Removed)
	return &clone
}

// view is the snapshot as the dry run sees it.
func (c *cycleState) view() ledger.Snapshot {
	if len(c.delta.Added) == 0 && len(c.delta.Removed) == 0 {
		return c.snapshot
	}
	return c.snapshot.With(&c.delta)
}

// add counts a pod at a node: one that a dry run removed is back.
func (c *cycleState) add(uid string, n ledger.NodeName) {
	if c.delta.Removed[uid] {
		delete(c.delta.Removed, uid)
		return
	}
	if c.delta.Added == nil {
		c.delta.Added = map[string]ledger.NodeName{}
	}
	c.delta.Added[uid] = n
}

// remove stops counting a pod at a node.
func (c *cycleState) remove(uid string, n ledger.NodeName) {
	if c.delta.Added[uid] == n {
		delete(c.delta.Added, uid)
		return
	}
	if c.delta.Removed == nil {
		c.delta.Removed = map[string]bool{}
	}
	c.delta.Removed[uid] = true
}

// stateOf returns what PreFilter left, or nil when the pod has no attachable
// volumes.
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
