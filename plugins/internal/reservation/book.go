// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Book lists the reservations of a process, by pod UID, keeps the ledger's
// assumed tickets in step with it, and writes and withdraws the VolumeTickets.
// Safe for parallel use.
//
//	Invariant: a pod in the book has a ticket in the ledger.
type Book struct {
	facts      Facts
	ledger     *ledger.Ledger
	now        func() time.Time
	touched    func(ledger.Touched)
	writer     *writer
	fencer     *fencer
	reconciler *reconciler
	decided    atomic.Uint64 // tickets that the controller has granted or refused

	mu   sync.Mutex
	pods map[string]*Reservation
}

// NewBook returns an empty book, which looks after leftovers once it runs.
func NewBook(cfg Config) *Book {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Touched == nil {
		cfg.Touched = func(ledger.Touched) {}
	}
	f := newFencer(cfg.Facts, cfg.Kube)
	b := &Book{
		facts: cfg.Facts, ledger: cfg.Facts.Ledger(), now: cfg.Now, touched: cfg.Touched,
		writer: newWriter(cfg.Tickets, f), fencer: f, pods: map[string]*Reservation{},
	}
	b.reconciler = newReconciler(b)
	return b
}

// Run compares tickets with the book, and puts right what differs, until ctx is
// done, which ends with the process.
func (b *Book) Run(ctx context.Context) { b.reconciler.run(ctx) }

// Lead notes that this process leads for a scheduler, and has the tickets
// withdrawn that an earlier leader left for pods that it didn't bind. Calls but
// the first of a scheduler cost one look into a map.
func (b *Book) Lead(scheduler string) { b.reconciler.lead(scheduler) }

// Pending is how many tickets are still to be compared with the book.
func (b *Book) Pending() int { return b.reconciler.queue.Len() }

// Enqueue has a ticket compared with the book, soon.
func (b *Book) Enqueue(id ledger.TicketID) { b.reconciler.enqueue(id) }

// Observe takes in what an event touched in the ledger. It returns at once.
func (b *Book) Observe(t ledger.Touched) {
	b.signalTouched(t)
	b.reconciler.enqueue(t.Tickets...)
}

// Open enters a reservation and has the ledger count it.
func (b *Book) Open(r *Reservation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.assume(r); err != nil {
		return err
	}
	b.pods[r.Ticket.Pod] = r
	return nil
}

// assume has the ledger count a reservation's ticket; mu is held. A ticket of an
// earlier attempt, which is being withdrawn, gives way, unless it counts for the
// same node: the new attempt may take it over. The reservation's own ticket that was
// refused is what it is; Seek hears of it.
func (b *Book) assume(r *Reservation) error {
	known := b.ledger.Snapshot().Ticket(r.Ticket.ID)
	refused := known != nil && known.Phase == ledger.TicketRefused
	switch {
	case refused && r.wrote(known.UID):
		return nil
	case refused, known != nil && known.Node != r.Ticket.Node:
		b.ledger.Forget(b.now(), r.Ticket.ID)
	case known != nil && !known.Ghost:
		return nil // it counts; what comes of it meanwhile is not to be replaced
	}
	return b.ledger.Assume(b.now(), r.Ticket)
}

// Write has a reservation's ticket written in the background. The context that
// it returns is for what follows: it ends when the reservation is closed, or
// with ctx. False when the reservation is off the book already.
func (b *Book) Write(ctx context.Context, r *Reservation) (context.Context, bool) {
	ctx, cancel := context.WithCancel(ctx)
	written := b.While(r, func() {
		r.attempt, r.cancel = b.writer.create(ctx, r.Ticket), cancel
	})
	if !written {
		cancel()
	}
	return ctx, written
}

// close takes a pod's reservation off the book, if it has one, and ends what
// goes on for it; mu is held. The ledger still counts it.
func (b *Book) close(uid string) *Reservation {
	r := b.pods[uid]
	if r != nil {
		delete(b.pods, uid)
		if r.cancel != nil {
			r.cancel()
		}
	}
	return r
}

// leave takes the reservation of a pod off the book that counts by itself.
func (b *Book) leave(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close(uid)
}

// Withdraw takes a pod's reservation off the book, which has come to nothing, and returns
// it; nil if it has none. One whose ticket was never asked for stops counting at once. One
// whose ticket may be written counts on until its deletion is confirmed, as it does for the
// controller; that is tried until ctx is done, which ends with the process. Where a
// bind may still have its effect, the pod is fenced before, and a pod that turns out
// to be bound keeps its ticket. The channel is closed when that is over.
func (b *Book) Withdraw(ctx context.Context, uid string) (r *Reservation, over <-chan struct{}) {
	b.mu.Lock()
	r = b.close(uid)
	switch {
	case r == nil:
		b.mu.Unlock()
		return nil, nil
	case r.attempt == nil:
		b.mu.Unlock()
		b.release(r.Ticket.ID)
		none := make(chan struct{})
		close(none)
		return r, none
	}
	defer b.mu.Unlock()
	return r, b.writer.withdraw(ctx, r.Ticket, r.attempt, r.binding, func() { b.release(r.Ticket.ID) })
}

// release ends the ledger's count for a reservation that is off the book,
// unless the pod has another one by now.
func (b *Book) release(id ledger.TicketID) {
	b.mu.Lock()
	if b.pods[id.Name] != nil {
		b.mu.Unlock()
		return
	}
	touched := b.ledger.Forget(b.now(), id)
	b.mu.Unlock()
	b.reconciler.enqueue(touched.Tickets...)
	b.touched(touched)
}

// reassert has the ledger count a reservation again, over what came of an
// earlier attempt: events of its ticket may be late. Once the grant has been
// passed on, its own ticket was the last to be seen. When that one is gone it
// has ended, or lives on as a ghost until the pod is seen to be bound.
func (b *Book) reassert(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.pods[uid]
	if r == nil || r.allowed {
		return
	}
	// Assume fails only for a ticket that has not given way, and assume sees to
	// that under the same lock.
	_ = b.assume(r)
}

// Of returns a pod's reservation, or nil.
func (b *Book) Of(uid string) *Reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pods[uid]
}

// Ungranted says whether a reservation was allowed without a grant, so that
// nothing is left to wait for before the bind.
func (b *Book) Ungranted(r *Reservation) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.nogrant
}

// Passed says whether a reservation's pod has been let go, with a grant or without.
func (b *Book) Passed(r *Reservation) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.allowed
}

// While runs f, unless r is off the book by then; nothing takes it off
// meanwhile. f must not call the book.
func (b *Book) While(r *Reservation, f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pods[r.Ticket.Pod] != r {
		return false
	}
	f()
	return true
}

// signalTouched tells those to look again for whom the ledger may have changed.
func (b *Book) signalTouched(t ledger.Touched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range t.Tickets {
		if r := b.pods[id.Name]; r != nil {
			r.signal()
		}
	}
	if len(t.Volumes) == 0 {
		return
	}
	for _, r := range b.pods {
		if r.Follow && r.allowed {
			r.signal()
		}
	}
}
