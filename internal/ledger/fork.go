// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
)

// LastBoot is the last reported boot under the name. It is this ledger's own memory, like SawUnknown:
// searches must tell that apart.
func (n *Node) LastBoot() Boot { return n.last }

// Deleted returns the UID of a ticket that this process deleted, until the deletion is seen, or empty.
func (l *Ledger) Deleted(id TicketID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buried[id]
}

// Fork returns an independent ledger with the same facts, at no cost. Safe for parallel use.
func (l *Ledger) Fork() *Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gen++ // shared records belong to neither
	return &Ledger{gen: l.gen, facts: l.facts, shown: l.shown, buried: maps.Clone(l.buried), refusals: slices.Clone(l.refusals)}
}
