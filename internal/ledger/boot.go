// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// Boot is a machine's boot. SystemUUID is empty if never reported, or OtherMachine; an empty BootID is
// unknown.
type Boot struct{ SystemUUID, BootID string }

// Is says whether a node has reported this boot of this machine.
func (b Boot) Is(n *Node) bool {
	return n != nil && b.SystemUUID != "" && b.BootID != "" && b == n.Boot()
}

// IsOfAnother says whether the boot is of another machine than the node's.
func (b Boot) IsOfAnother(n *Node) bool {
	return n != nil && b.SystemUUID != "" && n.SystemUUID != "" && b.SystemUUID != n.SystemUUID
}

// Boot is the node's reported machine and boot.
func (n *Node) Boot() Boot { return Boot{n.SystemUUID, n.BootID} }

// Boot is the machine and boot of the grant.
func (h *Hold) Boot() Boot { return Boot{h.SystemUUID, h.BootID} }

// Boot is the machine and boot of the forced detach.
func (f Fence) Boot() Boot { return Boot{f.SystemUUID, f.BootID} }

// BootOver: the boot is known to be over, and its mounts are gone, see facts.bootOver.
func (s Snapshot) BootOver(n *Node, b Boot) bool { return s.facts.bootOver(n, b) }

// bootOver: a boot and all its mounts are known to be over. A Node reports another boot of the same
// systemUUID, and no other node (a clone) has that systemUUID. Another machine of the name says nothing of
// the first. Without a systemUUID the boot alone tells: a residual risk, see docs/internals/invariants.md.
// A deleted Node shows nothing: its last boot may be older.
func (w *facts) bootOver(n *Node, b Boot) bool {
	if n == nil || !n.Exists || b.BootID == "" || n.BootID == "" || n.BootID == b.BootID {
		return false
	}
	return b.SystemUUID == "" || n.SystemUUID == b.SystemUUID && w.onlyOne(n)
}

// onlyOne: no other known node has this systemUUID, even deleted with volumes.
func (w *facts) onlyOne(n *Node) bool {
	for other := range w.nodes.all() {
		if other.Name != n.Name && other.SystemUUID == n.SystemUUID {
			return false
		}
	}
	return true
}

// OtherMachine replaces a systemUUID of two machines (different providerIDs), or stands for several.
const OtherMachine = "?"

// seeMachine says whether a node's new state is, or may be, of another machine.
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

// cloned says whether the systemUUID is the same but the providerIDs differ.
func cloned(was, is *NodeState) bool {
	return (was.SystemUUID == "" || is.SystemUUID == "" || was.SystemUUID == is.SystemUUID) && !sameProvider(was, is)
}

// sameProvider says whether the providerIDs of two states of a node agree, if both have one.
func sameProvider(was, is *NodeState) bool {
	return was.ProviderID == "" || is.ProviderID == "" || was.ProviderID == is.ProviderID
}
