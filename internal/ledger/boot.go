// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// Boot is a boot of a machine. An empty SystemUUID was never reported; OtherMachine stands for several
// machines. An empty BootID is unknown.
type Boot struct{ SystemUUID, BootID string }

// Is says whether a node has this boot of this machine, and has reported both.
func (b Boot) Is(n *Node) bool {
	return n != nil && b.SystemUUID != "" && b.BootID != "" && b == n.Boot()
}

// IsOfAnother says whether the boot is of another machine than the node names.
func (b Boot) IsOfAnother(n *Node) bool {
	return n != nil && b.SystemUUID != "" && n.SystemUUID != "" && b.SystemUUID != n.SystemUUID
}

// Boot is the node's machine and boot, as it reports them.
func (n *Node) Boot() Boot { return Boot{n.SystemUUID, n.BootID} }

// Boot is the machine and boot of the grant.
func (h *Hold) Boot() Boot { return Boot{h.SystemUUID, h.BootID} }

// Boot is the machine and boot of the forced detach.
func (f Fence) Boot() Boot { return Boot{f.SystemUUID, f.BootID} }

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
