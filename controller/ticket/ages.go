// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type ages struct {
	mu   sync.Mutex
	seen map[ledger.TicketID]age
}

type age struct {
	uid     string
	renewed string // the renewal that starts its time
	first   time.Time
	before  time.Duration // counted by earlier processes
}

func newAges() *ages { return &ages{seen: map[ledger.TicketID]age{}} }

// of returns a ticket's time since its creation or renewal. before counts only for a ticket new to this
// process (fresh).
func (a *ages) of(t *ledger.Ticket, renewed string, before time.Duration, now time.Time) (lived time.Duration, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.seen[t.ID]
	if fresh = !ok || known.uid != t.UID || known.renewed != renewed; fresh {
		known = age{t.UID, renewed, now, before}
		a.seen[t.ID] = known
	}
	return now.Sub(known.first) + known.before, fresh
}

func (a *ages) forget(id ledger.TicketID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.seen, id)
}
