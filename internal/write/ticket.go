// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// Status makes a ticket's object for a DecideTicket request: at the decision's version, else
// protocol.ErrStale. nil: the status is the same.
type Status func(protocol.Request) (*v1alpha1.VolumeTicket, error)

// Carry carries a ticket's task out, and returns when the ledger knows its effect. It calls status for each
// write.
func (e *Executor) Carry(ctx context.Context, task protocol.Task, status Status) error {
	if err := e.run(ctx, running{Task: task, status: status}); err != nil {
		return fmt.Errorf("%s %s: %w", task.Commit.Kind, task.Commit.Key, err)
	}
	return nil
}

func (e *Executor) decideTicket(ctx context.Context, r protocol.Request, status Status) (protocol.Answer, error) {
	ticket, err := status(r)
	switch {
	case err != nil:
		return protocol.Answer{Result: protocol.Unfit}, err
	case ticket == nil:
		return protocol.Answer{Result: protocol.Done}, nil
	}
	old, _ := e.config.Observer.Ticket(ledger.TicketID{Namespace: ticket.Namespace, Name: ticket.Name})
	var written *v1alpha1.VolumeTicket
	answer, err := ask(ctx, e, r, ticketFact, func(ctx context.Context) (_ *v1alpha1.VolumeTicket, err error) {
		written, err = e.config.Moorage.VolumeTickets(ticket.Namespace).UpdateStatus(ctx, ticket, metav1.UpdateOptions{})
		return written, err
	})
	if err != nil {
		return answer, fmt.Errorf("write the status of ticket %s: %w", r.Key, err)
	}
	e.config.Events.TicketChanged(old, written)
	return answer, nil
}
