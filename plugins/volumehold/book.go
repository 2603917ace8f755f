// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// reservation is one attempt to place a pod, from Reserve to Bind. A second
// attempt of the same pod is another reservation.
type reservation struct {
	pod    *corev1.Pod
	ticket ledger.Ticket
	follow bool          // PreBind has to wait for its volumes
	news   chan struct{} // of capacity 1: the ledger has changed for it

	// Written under book.mu while the reservation is on the book, and never
	// after.
	attempt *attempt           // at writing the ticket; nil before Permit
	allowed bool               // the grant was passed on to the framework
	cancel  context.CancelFunc // ends what goes on for it in the background
}

// poke tells whoever follows the reservation to look again.
func (r *reservation) poke() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// wrote says whether the ticket with this UID is the one written for r.
func (r *reservation) wrote(uid string) bool {
	if r.attempt == nil {
		return false
	}
	select {
	case <-r.attempt.done:
		return r.attempt.ticket != nil && string(r.attempt.ticket.UID) == uid
	default:
		return false
	}
}

// book lists the reservations, by pod UID, and keeps the ledger's assumed
// tickets in step with it. Safe for parallel use.
//
//	Invariant: a pod in the book has a ticket in the ledger.
type book struct {
	mu     sync.Mutex
	ledger *ledger.Ledger
	now    func() time.Time
	pods   map[string]*reservation
}

func newBook(l *ledger.Ledger, now func() time.Time) *book {
	return &book{ledger: l, now: now, pods: map[string]*reservation{}}
}

// open enters a reservation and has the ledger count it.
func (b *book) open(r *reservation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.assume(r); err != nil {
		return err
	}
	b.pods[r.ticket.Pod] = r
	return nil
}

// assume has the ledger count a reservation's ticket; mu is held. A ticket of an
// earlier attempt, which is being withdrawn, gives way, unless it counts for the
// same node: the new attempt may take it over.
func (b *book) assume(r *reservation) error {
	known := b.ledger.Snapshot().Ticket(r.ticket.ID)
	if known != nil && (known.Node != r.ticket.Node || known.Phase == ledger.TicketRefused) {
		b.ledger.Forget(b.now(), r.ticket.ID)
	}
	return b.ledger.Assume(b.now(), r.ticket)
}

// close takes a pod's reservation off the book, if it has one, and ends what
// goes on for it. The ledger still counts it.
func (b *book) close(uid string) *reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.pods[uid]
	if r != nil {
		delete(b.pods, uid)
		if r.cancel != nil {
			r.cancel()
		}
	}
	return r
}

// release ends the ledger's count for a reservation that is off the book,
// unless the pod has another one by now.
func (b *book) release(id ledger.TicketID) ledger.Touched {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pods[id.Name] != nil {
		return ledger.Touched{}
	}
	return b.ledger.Forget(b.now(), id)
}

// reassert has the ledger count a reservation again, over what came of an
// earlier attempt: events of its ticket may be late. Once the grant has been
// passed on, its own ticket was the last to be seen. When that one is gone it
// has ended, or lives on as a ghost until the pod is seen to be bound.
func (b *book) reassert(uid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.pods[uid]
	if r == nil || r.allowed {
		return
	}
	known := b.ledger.Snapshot().Ticket(r.ticket.ID)
	if known != nil && known.Phase == ledger.TicketRefused && r.wrote(known.UID) {
		return // refused is what it is; Permit hears of it
	}
	// Assume fails only for a ticket that has not given way, and assume sees to
	// that under the same lock.
	_ = b.assume(r)
}

// of returns a pod's reservation, or nil.
func (b *book) of(uid string) *reservation {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pods[uid]
}

// while runs f, unless r is off the book by then; nothing takes it off
// meanwhile.
func (b *book) while(r *reservation, f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pods[r.ticket.Pod] != r {
		return false
	}
	f()
	return true
}

// poke tells those to look again for whom the ledger may have changed.
func (b *book) poke(t ledger.Touched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range t.Tickets {
		if r := b.pods[id.Name]; r != nil {
			r.poke()
		}
	}
	if len(t.Volumes) == 0 {
		return
	}
	for _, r := range b.pods {
		if r.follow && r.allowed {
			r.poke()
		}
	}
}
