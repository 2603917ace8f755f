// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/tickets"
)

// endByNode ends a ticket whose node is emptied or gone, as it and its policies say. Otherwise it
// returns how long it has left at most before it must be looked at: 0 when no such time runs, negative
// when it is over. How much of the time is over is written down in steps.
func (c *Controller) endByNode(ctx context.Context, s ledger.Snapshot, t *ledger.Ticket) (time.Duration, error) {
	end := rules.EndOf(s, t, c.config.Now())
	if end.Cause != "" {
		return c.end(ctx, protocol.EndOf(s, t, end.Cause), end.Cause)
	}
	object, ok := c.config.Cache.Ticket(t.ID)
	if end.Keep == t.NodeGone || !ok || object.ResourceVersion != t.Version {
		return end.Again, nil
	}
	next := object.DeepCopy()
	next.Status.NodeGone = convert.NodeGone(end.Keep)
	return end.Again, c.config.Write.Carry(ctx, protocol.Write(t), tickets.As(next))
}

// end carries the end of a ticket out, and tells the ticket and its owner why. Where the ticket is not
// deleted, since its node is not as it was decided on, nothing is told, and the error is protocol.ErrStale.
// It returns what endByNode does. One that is being deleted already is kept by its finalizers: whoever set
// them knows, and it counts as any other ticket until they are gone, so there is no end to wait for.
func (c *Controller) end(ctx context.Context, task protocol.Task, cause rules.EndCause) (time.Duration, error) {
	object, _ := c.config.Cache.Ticket(task.Ticket.ID)
	if object != nil && object.DeletionTimestamp != nil {
		return 0, nil
	}
	if err := c.config.Write.Carry(ctx, task, nil); err != nil {
		return 0, fmt.Errorf("end it (%s): %w", cause, err)
	}
	c.config.Metrics.TicketEnded(task.Ticket.Type, cause)
	c.config.Events.TicketEnded(object, cause)
	return -1, nil
}
