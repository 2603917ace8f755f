// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
)

// NodeTrace is a ledger's memory of a volume at a node beside the API's present objects. Two ledgers with
// different traces may continue differently, which a search has to distinguish.
type NodeTrace struct {
	Doubted bool   // see Node.Doubts
	Boot    string // the boot where the volume in doubt may be mounted; empty: unknown
	OrBoot  string // or in this boot of the same machine; empty: none
	Listed  bool   // the node's last list named the volume in doubt
	// LeftReported: volumesAttached named the volume when the Node was deleted, or it was in use, and was taken by force since; and its
	// attachment was not seen to go.
	LeftReported bool
	// Rebooted: a kubelet of an earlier boot reported the known uses.
	Rebooted bool
	// LastBoot is the last bootID that a kubelet of the node's name has reported.
	LastBoot string
	// LastMachine is its systemUUID, and Machine the systemUUID where the volume in doubt may be
	// mounted; empty: unknown.
	LastMachine, Machine string
}

// Trace returns the ledger's memory of a volume at a node.
func (n *Node) Trace(v VolumeID) NodeTrace {
	t := NodeTrace{LeftReported: slices.Contains(n.left, v), Rebooted: n.rebooted, LastBoot: n.boot, LastMachine: n.machine}
	for _, d := range n.doubts {
		if d.volume == v {
			t.Doubted, t.Boot, t.OrBoot, t.Machine, t.Listed = true, d.boot, d.orBoot, d.machine, d.listed
		}
	}
	return t
}

// Deleted returns the UID of the ticket of a name that this process has deleted, until its deletion is
// seen; empty: none.
func (l *Ledger) Deleted(id TicketID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buried[id]
}

// Fork returns a separate ledger with the same facts: each is independent of the other's later events. It
// costs nothing, and is safe for parallel use, for searches through many futures of one past.
func (l *Ledger) Fork() *Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gen++ // shared records belong to neither
	return &Ledger{gen: l.gen, facts: l.facts, shown: l.shown, buried: maps.Clone(l.buried), refusals: slices.Clone(l.refusals)}
}
