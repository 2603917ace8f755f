// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/work"
)

// keeperWorkers read pods in parallel, which only leftovers need.
const keeperWorkers = 4

// reconciler compares each ticket that changes in the ledger with the book, and
// puts right what differs: a reservation that an older event has overwritten is
// counted again, one whose pod counts by itself leaves the book, and a ticket
// of ours that nobody here stands behind is withdrawn. It is level-triggered,
// and safe for parallel use.
type reconciler struct {
	book  *Book
	queue *work.Queue[ledger.TicketID]

	mu      sync.Mutex
	leading map[string]bool // schedulers for which this process leads
}

func newReconciler(b *Book) *reconciler {
	k := &reconciler{book: b, leading: map[string]bool{}}
	// Namespaces take turns: a read may be a list of all pods of one.
	of := func(id ledger.TicketID) string { return id.Namespace }
	k.queue = work.NewInTurns("leftover reservations", of, func(ctx context.Context, id ledger.TicketID) (time.Duration, error) {
		return 0, k.reconcile(ctx, id)
	})
	return k
}

// enqueue has tickets looked at, soon.
func (k *reconciler) enqueue(ids ...ledger.TicketID) {
	for _, id := range ids {
		k.queue.Add(id)
	}
}

// lead is Book.Lead.
func (k *reconciler) lead(scheduler string) {
	k.mu.Lock()
	first := !k.leading[scheduler]
	k.leading[scheduler] = true
	k.mu.Unlock()
	if !first {
		return
	}
	for t := range k.book.facts.Snapshot().Tickets() {
		if t.Scheduler == scheduler {
			k.queue.Add(t.ID)
		}
	}
}

func (k *reconciler) leads(scheduler string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leading[scheduler]
}

// run keeps until ctx is done.
func (k *reconciler) run(ctx context.Context) { k.queue.Run(ctx, keeperWorkers) }

// reconcile puts one ticket right. Its error is that of a read. ctx ends with the
// process.
func (k *reconciler) reconcile(ctx context.Context, id ledger.TicketID) error {
	// A reservation leaves the book as its withdrawal begins, and the withdrawal ends after the
	// ledger has forgotten the ticket. Asked in this order, one of the three always answers.
	r, withdrawing := k.book.Of(id.Name), k.book.writer.busy(id.Name)
	s := k.book.facts.Snapshot()
	ticket, pod := s.Ticket(id), s.Pod(id.Name)
	bound := pod != nil && pod.Node != ""
	if r != nil {
		if !bound {
			k.book.reassert(id.Name)
			return nil
		}
		k.book.leave(id.Name)
		if ticket != nil && ticket.UID == "" {
			// No object stands behind it, so no event will ever end it.
			k.book.release(id)
		}
		return nil
	}
	switch {
	case ticket == nil, ticket.Ghost, ticket.Type != ledger.TypePod:
		return nil // ended, or ending
	case bound && ticket.UID == "":
		k.book.release(id) // a withdrawal that found the pod bound
		return nil
	case bound:
		return nil // the controller's to end
	case ticket.UID == "", !k.leads(ticket.Scheduler), withdrawing:
		return nil // not written, somebody else's, or being withdrawn
	}
	return k.withdrawLeftover(ctx, ticket)
}

// withdrawLeftover withdraws a ticket that nobody here stands behind, unless its pod
// turns out to be bound. The pod is fenced before: an earlier leader's bind may be
// under way. A ticket whose pod is gone ends with it.
func (k *reconciler) withdrawLeftover(ctx context.Context, t *ledger.Ticket) error {
	pod, err := k.book.facts.ConfirmPod(ctx, t.ID.Namespace, t.PodName, t.Pod)
	if err != nil || pod == nil || pod.Spec.NodeName != "" {
		return err
	}
	if k.book.Of(t.ID.Name) != nil {
		return nil // the pod has just been given a node; the ticket is replaced or taken over
	}
	klog.FromContext(ctx).Info("Withdrawing a reservation that nobody stands behind", "ticket", t.ID, "node", t.Node)
	k.book.writer.withdrawLeft(ctx, *t, func() { k.book.release(t.ID) })
	return nil
}
