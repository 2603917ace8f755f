// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/write"
)

// job makes a ticket, or ends the ticket with this UID.
type job struct {
	make operation.Make
	end  string
}

func (w job) is(other job) bool { return w.end == other.end && w.make.ID == other.make.ID }

// order has a plan's writes made. A write under way, or retried, goes on.
func (c *Controller) order(plan operation.Plan) {
	next := map[ledger.TicketID]job{}
	for _, m := range plan.Make {
		next[m.ID] = job{make: m}
	}
	for _, t := range plan.End {
		next[t.ID] = job{end: t.UID}
	}
	c.mu.Lock()
	before := c.todo
	c.todo = next
	c.mu.Unlock()
	for id, w := range next {
		last, ordered := before[id]
		switch {
		case ordered && last.is(w):
		case w.end != "": // tickets to end never hold up tickets to make
			c.queue.Later(id)
		default:
			c.queue.Add(id)
		}
	}
}

// write makes or ends a ticket. A failed write is repeated after a pause, while it is ordered.
func (c *Controller) write(ctx context.Context, id ledger.TicketID) (time.Duration, error) {
	c.mu.Lock()
	w, ordered := c.todo[id]
	c.mu.Unlock()
	if !ordered {
		return 0, nil
	}
	if err := c.config.Turn(ctx); err != nil {
		return 0, fmt.Errorf("waiting for a turn: %w", err)
	}
	// A sent request is not given up when ctx is done: it might be carried out later.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.config.Timeout)
	defer cancel()
	defer c.kick()
	var err error
	if w.end != "" {
		err = c.end(bounded, id, w.end)
	} else {
		err = c.make(bounded, w.make)
	}
	if err == nil {
		c.done(id, w)
	}
	return 0, err
}

// done forgets a finished write: it can be ordered again, for example after the ticket's deletion.
func (c *Controller) done(id ledger.TicketID, w job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.todo[id].is(w) {
		delete(c.todo, id)
	}
}

// make creates a ticket if the name is free: the next look reads an existing one.
func (c *Controller) make(ctx context.Context, m operation.Make) error {
	created, err := c.config.Moorage.VolumeTickets(m.ID.Namespace).Create(ctx, m.Object(), metav1.CreateOptions{})
	switch {
	case err == nil:
		c.config.Cache.Saw(created)
		c.config.Metrics.OperationTicket(m.Operation.String(), string(operation.Made))
		c.config.Events.OperationTicket(reported(m.Told), fmt.Sprintf("ticket %s is made: %s", m.ID, m.Why()))
		klog.FromContext(ctx).V(1).Info("A ticket for an operation is made", "ticket", m.ID, "operation", m.Operation, "of", m.Told)
		return nil
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%w: there is a ticket %s", protocol.ErrStale, m.ID)
	}
	if why := write.Refusal(err); why != "" {
		c.config.Events.OperationHeld(reported(m.Told), operation.ReasonRefused, fmt.Sprintf("the API server refuses ticket %s: %s", m.ID, why))
	}
	return fmt.Errorf("make ticket %s for the %s of %s: %w", m.ID, m.Operation, m.Told, err)
}

// end deletes only the ticket with this UID.
func (c *Controller) end(ctx context.Context, id ledger.TicketID, uid string) error {
	is := types.UID(uid)
	err := c.config.Moorage.VolumeTickets(id.Namespace).Delete(ctx, id.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &is}})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("end ticket %s: %w", id, err)
}
