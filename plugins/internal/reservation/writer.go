// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// requestTimeout bounds one request, so that a server that hangs doesn't keep
// the next write of the same pod waiting for ever.
const requestTimeout = 10 * time.Second

// errBound says that a ticket of another node is there for good.
var errBound = errors.New("the pod is bound or gone already")

// errForeign says that the ticket's name is taken by somebody else's ticket.
var errForeign = errors.New("a ticket of that name belongs to another scheduler")

// writer creates and deletes VolumeTickets in the background. Its writes for
// one pod happen one after the other, in the order in which they were asked
// for: the ticket's name is the pod's UID, so that a second attempt's ticket
// can only follow the first one's deletion. Safe for parallel use.
type writer struct {
	tickets client.Interface
	fencer  *fencer

	mu   sync.Mutex
	last map[string]chan struct{} // by pod UID: closed when the newest write is over
}

// attempt is one ticket that was to be written.
type attempt struct {
	done chan struct{} // closed when the write is over
	// Set before done is closed.
	ticket *v1alpha1.VolumeTicket // as it was written; nil with err
	err    error
	sent   bool // a request went out, so that the ticket may exist even with err
	// adopted says that the ticket was there already: whoever wrote it may have sent
	// a bind.
	adopted bool
}

func newWriter(tickets client.Interface, f *fencer) *writer {
	return &writer{tickets: tickets, fencer: f, last: map[string]chan struct{}{}}
}

// turn takes the next place in a pod's order of writes: before is closed when
// it is its turn, and after is to be called when it is over.
func (w *writer) turn(uid string) (before <-chan struct{}, after func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	previous := w.last[uid]
	if previous == nil {
		previous = make(chan struct{})
		close(previous)
	}
	own := make(chan struct{})
	w.last[uid] = own
	return previous, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.last[uid] == own {
			delete(w.last, uid)
		}
		close(own)
	}
}

// busy says whether a write for a pod is under way or waits for its turn.
func (w *writer) busy(uid string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[uid] != nil
}

// create begins to write a ticket. When ctx is done before the request goes
// out, none does; one that is under way is waited for, since what became of it
// must be known.
func (w *writer) create(ctx context.Context, t ledger.Ticket) *attempt {
	a := &attempt{done: make(chan struct{})}
	before, after := w.turn(t.ID.Name)
	go func() {
		defer after()
		defer close(a.done)
		<-before
		if a.err = ctx.Err(); a.err != nil {
			return
		}
		a.sent = true
		a.ticket, a.adopted, a.err = w.write(ctx, &t)
	}()
	return a
}

// write creates a ticket. One that exists already is taken over when it asks
// for the same, such as that of an earlier leader or of an answer that was
// lost, and is else replaced, after its pod is fenced.
func (w *writer) write(ctx context.Context, t *ledger.Ticket) (written *v1alpha1.VolumeTicket, adopted bool, err error) {
	wanted := Object(*t)
	tickets := w.tickets.VolumeTickets(wanted.Namespace)
	err = retry(ctx, func(ctx context.Context) (bool, error) {
		made, err := tickets.Create(ctx, wanted, metav1.CreateOptions{})
		switch {
		case late(ctx, err):
			return false, nil // it may exist by now, and is then taken over
		case !apierrors.IsAlreadyExists(err):
			written = made
			return true, err
		}
		existing, err := tickets.Get(ctx, wanted.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, err
		case sameReservation(existing, wanted):
			written, adopted = existing, true
			return true, nil
		case existing.Spec.Scheduler != wanted.Spec.Scheduler:
			return false, fmt.Errorf("%w: %s", errForeign, existing.Spec.Scheduler)
		}
		unbound, err := w.fencer.fence(ctx, t)
		switch {
		case apierrors.IsConflict(err):
			return false, nil
		case err == nil && !unbound:
			return false, errBound
		case err == nil:
			_, err = w.delete(ctx, existing)
		}
		return false, err
	})
	if err != nil {
		return nil, false, err
	}
	return written, adopted, nil
}

// late says whether a server had no answer in time: it may have done, or may
// still do, what it was asked for. A busy one then has the more to do the more
// is given up.
func late(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err))
}

// withdraw begins to delete what came of an attempt, and goes on until it is
// known to be gone, or ctx is done. Once it is gone, released is called, before the next
// write for the pod; the channel is closed when all that is over. Where a bind may
// have been sent by the ticket, here (bound) or by whoever wrote it, the pod is fenced
// before; a pod that turns out to be bound or gone keeps its ticket.
func (w *writer) withdraw(ctx context.Context, t ledger.Ticket, a *attempt, bound bool, released func()) <-chan struct{} {
	over := make(chan struct{})
	before, after := w.turn(t.ID.Name)
	go func() {
		defer close(over)
		defer after()
		<-before
		gone := true // it never was
		switch {
		case a.ticket == nil && !a.sent && !bound:
		case (bound || a.adopted || a.ticket == nil) && !w.fenced(ctx, &t):
			gone = false
		default:
			gone = w.remove(ctx, t.ID, a.ticket)
		}
		if gone {
			released()
		}
	}()
	return over
}

// fenced fences a ticket's pod, and returns whether it has no node; false when ctx is
// done before that is known.
func (w *writer) fenced(ctx context.Context, t *ledger.Ticket) (unbound bool) {
	err := persist(ctx, func(ctx context.Context) (bool, error) {
		var err error
		unbound, err = w.fencer.fence(ctx, t)
		if apierrors.IsConflict(err) {
			return false, nil // it has changed: read again
		}
		return err == nil, err
	})
	return err == nil && unbound
}

// remove deletes a ticket until it is known to be gone. known is the ticket as
// it was written; nil when what came of the write is not known, and whatever
// has its name is meant. False when ctx is done before.
func (w *writer) remove(ctx context.Context, id ledger.TicketID, known *v1alpha1.VolumeTicket) bool {
	tickets := w.tickets.VolumeTickets(id.Namespace)
	err := persist(ctx, func(ctx context.Context) (bool, error) {
		target := known
		if target == nil {
			found, err := tickets.Get(ctx, id.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			} else if err != nil {
				return false, err
			}
			target = found
		}
		return w.delete(ctx, target)
	})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("A reservation was not withdrawn before the process ended", "ticket", id, "err", err)
	}
	return err == nil
}

// delete deletes just this ticket and says whether it is gone for certain.
func (w *writer) delete(ctx context.Context, t *v1alpha1.VolumeTicket) (bool, error) {
	err := w.tickets.VolumeTickets(t.Namespace).Delete(ctx, t.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &t.UID},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true, nil // a conflict: another ticket has the name by now
	}
	return false, err
}

// retry tries until it is done, fails, or ctx is done. Requests run to their
// end or timeout even when ctx is done meanwhile.
func retry(ctx context.Context, try wait.ConditionWithContextFunc) error {
	return backoff().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		request, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		return try(request)
	})
}

// persist is retry for what must not fail: errors are tried again, too.
func persist(ctx context.Context, try wait.ConditionWithContextFunc) error {
	return retry(ctx, func(request context.Context) (bool, error) {
		done, err := try(request)
		if err != nil {
			klog.FromContext(ctx).Error(err, "A reservation could not be withdrawn, and will be tried again")
		}
		return done, nil
	})
}

// backoff spaces attempts; at the cap it goes on.
func backoff() wait.DelayFunc {
	return wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Second}.DelayFunc()
}

// withdrawLeft begins to delete a ticket, of which no attempt of this process is known;
// see withdraw.
func (w *writer) withdrawLeft(ctx context.Context, t ledger.Ticket, released func()) {
	w.withdraw(ctx, t, &attempt{adopted: true, ticket: &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.ID.Namespace, Name: t.ID.Name, UID: types.UID(t.UID)},
	}}, false, released)
}
