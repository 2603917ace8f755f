// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
)

// AskOften has a Watcher ask again at once whether an unserved kind is served.
func AskOften(w *Watcher) { w.every = time.Millisecond }

// There says whether a controller counts a ticket of its own by some facts, and whether it reads
// the ticket again.
func There(s ledger.Snapshot, own operation.Ticket) (there, again bool) {
	c := &Controller{own: map[ledger.TicketID]operation.Ticket{own.ID: own}, touched: map[ledger.TicketID]bool{}}
	return len(c.there(s)) > 0, c.touched[own.ID]
}

// Ordered is how many writes the last look of a controller has ordered that are not done.
func Ordered(c *Controller) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.todo)
}
