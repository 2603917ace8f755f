// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Reservation is one attempt to place a pod, from the choice of a node to the
// bind. A second attempt of the same pod is another reservation.
type Reservation struct {
	Pod    *corev1.Pod
	Ticket ledger.Ticket
	// Follow says that the grant is not the last word before the bind; see Follows. Once
	// the reservation is on the book, FollowsGrant alone sets it.
	Follow bool
	// Local says that no volume of the pod needs an attachment: the reservation only counts in
	// this process until the pod is bound. No ticket is written. Set before Open.
	Local bool

	news chan struct{} // of capacity 1: the ledger has changed for it

	// Written while Book.mu is held and the reservation is on the book, and
	// never after.
	attempt *attempt           // at writing the ticket; nil before Write
	nogrant bool               // allowed without a grant
	allowed bool               // the grant was passed on
	binding bool               // a bind was sent, and may still have its effect
	cancel  context.CancelFunc // ends what goes on for it in the background
}

// New returns a reservation that is on no book yet.
func New(pod *corev1.Pod, ticket ledger.Ticket, follow bool) *Reservation {
	return &Reservation{Pod: pod, Ticket: ticket, Follow: follow, news: make(chan struct{}, 1)}
}

// News has an element when the ledger has changed for the reservation since it
// was last received from. One goroutine at a time may follow it.
func (r *Reservation) News() <-chan struct{} { return r.news }

// Allow notes that the grant is passed on: from here on the ticket of this
// attempt is the one that counts. To be called in Book.While.
func (r *Reservation) Allow() { r.allowed = true }

// Allowed says whether Allow was called. To be called once the reservation is
// off the book.
func (r *Reservation) Allowed() bool { return r.allowed }

// AllowUngranted is Allow without a grant: the controller did not answer, and
// the pod's policies have it bound all the same. To be called in Book.While.
func (r *Reservation) AllowUngranted() { r.allowed, r.nogrant = true, true }

// Written says whether a ticket was asked for, so that one may exist. To be
// called once the reservation is off the book.
func (r *Reservation) Written() bool { return r.attempt != nil }

// signal tells whoever follows the reservation to look again.
func (r *Reservation) signal() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// wrote says whether the ticket with this UID is the one written for r.
func (r *Reservation) wrote(uid string) bool {
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
