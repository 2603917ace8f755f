// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// BootOver says whether a boot of a machine is known to be over, so that all its mounts are
// gone: see facts.bootOver.
func (s Snapshot) BootOver(n *Node, b Boot) bool { return s.facts.bootOver(n, b) }

// bootOver says whether a boot of a machine is known to be over, which ends all its mounts: a Node reports
// another boot of the same machine, by its systemUUID, and no other node has that systemUUID, as cloned
// machines do. Another machine that reports under the name says nothing of the first one. Without a
// reported systemUUID the boot alone tells: a residual risk, see docs/internals/invariants.md. A deleted
// Node shows nothing: its last boot may be an older one.
func (w *facts) bootOver(n *Node, b Boot) bool {
	if n == nil || !n.Exists || b.BootID == "" || n.BootID == "" || n.BootID == b.BootID {
		return false
	}
	return b.SystemUUID == "" || n.SystemUUID == b.SystemUUID && w.onlyOne(n)
}

// onlyOne says whether, as far as this process knows, no other node has this systemUUID, deleted Nodes
// with volumes included.
func (w *facts) onlyOne(n *Node) bool {
	for other := range w.nodes.all() {
		if other.Name != n.Name && other.SystemUUID == n.SystemUUID {
			return false
		}
	}
	return true
}

// OtherMachine replaces a systemUUID that two machines share (their providerIDs differ), or stands for
// several possible machines.
const OtherMachine = "?"

// seeMachine takes in the machine of a node's new state, and says whether it is, or may be, another machine
// than before.
func (n *Node) seeMachine(was, is *NodeState, now time.Time) bool {
	switch {
	case is.SystemUUID == "":
		n.MachineAt = time.Time{}
	case n.MachineAt.IsZero() || was.SystemUUID != is.SystemUUID || !sameProvider(was, is):
		n.MachineAt = now
	default:
		return false
	}
	return was.SystemUUID != is.SystemUUID || !sameProvider(was, is)
}

// cloned says whether a node's state names another machine with the same systemUUID: the providerIDs
// differ.
func cloned(was, is *NodeState) bool {
	return (was.SystemUUID == "" || is.SystemUUID == "" || was.SystemUUID == is.SystemUUID) && !sameProvider(was, is)
}

// sameProvider says whether the providerIDs of two states of a node agree, if both have one.
func sameProvider(was, is *NodeState) bool {
	return was.ProviderID == "" || is.ProviderID == "" || was.ProviderID == is.ProviderID
}
