// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
)

// LastBoot is the last boot that a kubelet of the node's name has reported. With SawUnknown it is a ledger's
// memory beside the API's present objects: a search has to tell ledgers with different memories apart.
func (n *Node) LastBoot() Boot { return n.last }

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
