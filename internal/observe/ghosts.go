// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/moorage-dev/moorage/internal/fair"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// ghostReaders is for how many reservations without a ticket pods are read at once.
const ghostReaders = 4

// The pauses after reads that failed double from the first to the longest.
const firstUnread, longestUnread = 200 * time.Millisecond, time.Minute

// newGhosts is the queue of reservations whose tickets somebody else deleted.
func newGhosts() workqueue.TypedRateLimitingInterface[ledger.TicketID] {
	turns := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[ledger.TicketID]{Queue: &ghostTurns{}})
	return workqueue.NewTypedRateLimitingQueueWithConfig(ghostPauses(), workqueue.TypedRateLimitingQueueConfig[ledger.TicketID]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[ledger.TicketID]{Queue: turns}),
	})
}

// ghostPauses are of each by itself.
func ghostPauses() workqueue.TypedRateLimiter[ledger.TicketID] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ledger.TicketID](firstUnread, longestUnread)
}

// ghostTurns has namespaces take turns: a read may be a list of all pods of one. Serial.
type ghostTurns struct {
	row fair.Row[ledger.TicketID]
}

var _ workqueue.Queue[ledger.TicketID] = (*ghostTurns)(nil)

// Push implements workqueue.Queue.
func (g *ghostTurns) Push(id ledger.TicketID) { g.row.Push(id.Namespace, id) }

// Touch implements workqueue.Queue: who comes again keeps the place.
func (g *ghostTurns) Touch(ledger.TicketID) {}

// Len implements workqueue.Queue.
func (g *ghostTurns) Len() int { return g.row.Len() }

// Pop implements workqueue.Queue. It is called where Len is not 0.
func (g *ghostTurns) Pop() ledger.TicketID {
	id, _ := g.row.Pop()
	return id
}
