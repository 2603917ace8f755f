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

// endByNode ends a ticket whose node is drained or gone, by its own and its policies' rules. Otherwise it
// returns the longest time until the next check: 0 if no time runs, negative if it is over. The time is
// written in steps.
func (c *Controller) endByNode(ctx context.Context, s ledger.Snapshot, t *ledger.Ticket) (time.Duration, error) {
	end := rules.EndOf(s, t, c.config.Now())
	if end.Cause != "" {
		return c.end(ctx, protocol.EndOf(t, end.Cause), end.Cause)
	}
	object, ok := c.config.Cache.Ticket(t.ID)
	if end.Keep == t.NodeGone || !ok || object.ResourceVersion != t.Version {
		return end.Again, nil
	}
	next := object.DeepCopy()
	next.Status.NodeGone = convert.NodeGone(end.Keep)
	return end.Again, c.config.Write.Carry(ctx, protocol.Write(t), tickets.As(next))
}

// end ends a ticket and tells it and its owner why. If its node has changed since the decision, it is kept,
// nothing is told, and the error is protocol.ErrStale. It returns endByNode's result. A ticket under
// deletion is kept by its finalizers' authors: it counts until it is gone, and there is no end to wait for.
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
