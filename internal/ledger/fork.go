// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
)

// NodeTrace is what a ledger remembers of a volume at a node besides what the API's
// objects say now. Two ledgers that differ in it may go on differently, which a search
// has to tell apart.
type NodeTrace struct {
	Doubted bool   // see Node.Doubts
	Boot    string // in which the volume in doubt may be mounted; empty: not known
	OrBoot  string // or in this boot of the same machine; empty: in no other one
	Listed  bool   // the node's last list named the volume in doubt
	// LeftReported: volumesAttached named the volume when the Node was deleted, or it was in use, and was taken by force since; and its
	// attachment was not seen to go.
	LeftReported bool
	// Rebooted: what the node is known to use was said by a kubelet of an earlier boot.
	Rebooted bool
	// LastBoot is the last bootID that a kubelet of the node's name has reported.
	LastBoot string
	// LastMachine is the systemUUID with it, and Machine the one where the volume in doubt
	// may be mounted; empty: not known.
	LastMachine, Machine string
}

// Trace returns what is remembered of a volume at a node.
func (n *Node) Trace(v VolumeID) NodeTrace {
	t := NodeTrace{LeftReported: slices.Contains(n.left, v), Rebooted: n.rebooted, LastBoot: n.boot, LastMachine: n.machine}
	for _, d := range n.doubts {
		if d.volume == v {
			t.Doubted, t.Boot, t.OrBoot, t.Machine, t.Listed = true, d.boot, d.orBoot, d.machine, d.listed
		}
	}
	return t
}

// Deleted returns the UID of the ticket of a name that this process has deleted, until
// its deletion is seen; empty: none.
func (l *Ledger) Deleted(id TicketID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buried[id]
}

// Fork returns a ledger of its own that begins with the same facts: what is
// applied to one of the two does not show in the other. It costs nothing, and
// is safe for parallel use. A search through many futures of one past forks.
func (l *Ledger) Fork() *Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gen++ // records that both share belong to neither
	return &Ledger{gen: l.gen, facts: l.facts, shown: l.shown, buried: maps.Clone(l.buried), refusals: slices.Clone(l.refusals)}
}
