// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// WriteTicketStatus replaces a ticket's status at exactly the ticket's
// version.
func (e *Executor) WriteTicketStatus(ctx context.Context, ticket *v1alpha1.VolumeTicket) error {
	tickets := e.config.Moorage.VolumeTickets(ticket.Namespace)
	old, _ := e.config.Observer.Ticket(ledger.TicketID{Namespace: ticket.Namespace, Name: ticket.Name})
	written, err := call(ctx, e, func(ctx context.Context) (*v1alpha1.VolumeTicket, error) {
		return tickets.UpdateStatus(ctx, ticket, metav1.UpdateOptions{})
	})
	switch {
	case err == nil:
		e.config.Observer.Saw(written)
		e.config.Events.TicketChanged(old, written)
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: ticket %s/%s is gone", ErrStale, ticket.Namespace, ticket.Name)
	case mayFollow(err):
		// Nothing else is granted at the node until it is known whether this is.
		if err := e.outlast(ctx); err != nil {
			return err
		}
	case !apierrors.IsConflict(err):
		return fmt.Errorf("write the status of ticket %s/%s: %w", ticket.Namespace, ticket.Name, err)
	}
	now, err := call(ctx, e, func(ctx context.Context) (*v1alpha1.VolumeTicket, error) {
		return tickets.Get(ctx, ticket.Name, metav1.GetOptions{})
	})
	if err == nil {
		e.config.Observer.Saw(now)
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read ticket %s/%s: %w", ticket.Namespace, ticket.Name, err)
	}
	return fmt.Errorf("%w: ticket %s/%s has another version", ErrStale, ticket.Namespace, ticket.Name)
}

// DeleteTicket deletes exactly the version of a ticket that was decided on,
// and ends its reservation when it is gone, not before.
func (e *Executor) DeleteTicket(ctx context.Context, t *ledger.Ticket) error {
	err := e.try(ctx, func(ctx context.Context) error {
		return e.config.Moorage.VolumeTickets(t.ID.Namespace).Delete(ctx, t.ID.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: ptr.To(uid(t.UID)), ResourceVersion: ptr.To(t.Version)},
		})
	})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		e.config.Observer.Apply(ledger.TicketReleased{ID: t.ID, UID: t.UID})
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: ticket %s has another version", ErrStale, t.ID)
	}
	return fmt.Errorf("delete ticket %s: %w", t.ID, err)
}
