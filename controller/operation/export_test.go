// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
)

// AskOften has a Watcher ask for unserved kinds without a pause.
func AskOften(w *Watcher) { w.every = time.Millisecond }

// There says whether a ticket counts and is read again.
func There(s ledger.Snapshot, own operation.Ticket) (there, again bool) {
	c := &Controller{own: map[ledger.TicketID]operation.Ticket{own.ID: own}, touched: map[ledger.TicketID]bool{}}
	return len(c.there(s)) > 0, c.touched[own.ID]
}

// Ordered counts the open writes of the last look.
func Ordered(c *Controller) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.todo)
}
