// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
)

// Fork returns a ledger of its own that begins with the same facts: what is
// applied to one of the two does not show in the other. It costs nothing, and
// is safe for parallel use. A search through many futures of one past forks.
func (l *Ledger) Fork() *Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gen++ // records that both share belong to neither
	return &Ledger{gen: l.gen, facts: l.facts, buried: maps.Clone(l.buried), refusals: slices.Clone(l.refusals)}
}
