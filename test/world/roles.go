// SPDX-License-Identifier: Apache-2.0

package world

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// WithoutSentGrants is for a controller in the tickets' scheduler's process: it sees a grant only once it
// is written.
func WithoutSentGrants(l *ledger.Ledger, now time.Time) ledger.Snapshot {
	s := l.Snapshot()
	var without *ledger.Ledger
	for t := range s.Tickets() {
		if !t.Granting {
			continue
		}
		if without == nil {
			without = l.Fork()
		}
		without.Apply(now, ledger.GrantResolved{ID: t.ID, UID: t.UID, Version: t.Version})
	}
	if without == nil {
		return s
	}
	return without.Snapshot()
}
