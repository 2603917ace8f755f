// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// ReasonEnded is the Reason of a LostError, and of a NotSatisfiedError, if the ticket itself is gone:
// it was deleted, or its time or its owner is over.
const ReasonEnded = "Ended"

// ReasonInterrupted is the Reason of a LostError if the ticket has its volumes, but lost them since the
// handle was acquired, and was granted them again, unseen.
const ReasonInterrupted = "Interrupted"

// ReasonUnheard is the Reason of a LostError if the API server has not answered for Request.Unheard:
// the volumes may be lost, or about to be, without a sign. Acquire goes on with the ticket if it still
// has them.
const ReasonUnheard = "Unheard"

// NotSatisfiedError is the cause why Acquire returned without the volumes. Reason is a code of
// docs/reasons.md, with its remedy in Message; or Reason is ReasonEnded.
type NotSatisfiedError struct {
	Name, Reason, Message string
	Err                   error // why Acquire waited no longer
}

func (e *NotSatisfiedError) Error() string {
	return fmt.Sprintf("ticket %s is not satisfied: %s: %s (%v)", e.Name, e.Reason, e.Message, e.Err)
}

// Unwrap is the cause of the end of Acquire's context, or ErrEnded.
func (e *NotSatisfiedError) Unwrap() error { return e.Err }

// LostError is the cause of the end of a handle's context when its volumes are no longer the ticket's.
type LostError struct{ Name, Reason, Message string }

func (e *LostError) Error() string {
	return fmt.Sprintf("ticket %s has lost its volumes: %s: %s", e.Name, e.Reason, e.Message)
}

// Handle is a ticket while its volumes are attached, or detached as it asks for. When they are lost it is over, and the
// ticket asks on: another Acquire of the same request waits until they are back. Safe for
// parallel use.
type Handle struct {
	client    *Client
	request   Request
	uid       types.UID
	session   string
	life      context.Context
	end       context.CancelCauseFunc
	work      context.Context
	ask       context.CancelCauseFunc
	satisfied chan struct{} // closed

	// For the goroutine of follow only.
	had     *v1alpha1.VolumeTicket // when it was satisfied; nil before
	unheard *time.Timer            // ends the handle; nil before it is satisfied
	renewed time.Time              // when its TTL was begun anew last

	mu              sync.Mutex
	known           *v1alpha1.VolumeTicket
	reason, message string           // told to OnWait last
	asked           string           // told to OnYield last
	kept            metav1.Condition // what kept the ticket from its grant last
}

func newHandle(ctx context.Context, c *Client, r Request, uid types.UID, session string) *Handle {
	h := &Handle{client: c, request: r, uid: uid, session: session, satisfied: make(chan struct{}), renewed: time.Now()}
	h.life, h.end = context.WithCancelCause(context.WithoutCancel(ctx))
	h.work, h.ask = context.WithCancelCause(h.life)
	return h
}

// Context ends when the volumes may no longer be used: they were taken away, the ticket has ended, or
// Release or Leave was called; context.Cause says which. Use it for all work on the volumes. It also
// ends when the API server has not answered for Request.Unheard (ReasonUnheard): meanwhile the ticket
// may be asked to yield, and when that time is over the controller gives the volumes to others, heard
// or not. Until then a loss is not seen; nor is it before the volumes are lost if Unheard is
// longer than that time, 30 s, or if the ticket is deleted.
func (h *Handle) Context() context.Context { return h.life }

// Work is Context for work that stops when the ticket is asked to let go of its volumes: it ends then
// as well, with ErrAsked, the claimant and the time, and stays ended if the ticket is asked no longer.
// The volumes are the ticket's until that time: finish all work that must be whole, and call LetGo.
// Context says whether they still were when the work had stopped.
func (h *Handle) Work() context.Context { return h.work }

// Ticket is the ticket as last seen with its volumes: it does not change after they are lost.
func (h *Handle) Ticket() *v1alpha1.VolumeTicket {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known
}

// Node is where the volumes are; empty of a ticket that asks for them to be detached.
func (h *Handle) Node() string { return h.Ticket().Node() }

// Renew begins the ticket's TTL anew. Call it while the work goes on, well before the time is
// over: at a third of it, say. It makes no new ticket where this one has ended.
func (h *Handle) Renew(ctx context.Context) error {
	var annotations map[string]string
	if h.request.TTL != 0 {
		annotations = renewal(time.Now())
	}
	if err := h.client.note(ctx, h.request, h.uid, "", annotations); err != nil {
		return fmt.Errorf("renew the ticket %s: %w", h.name(), err)
	}
	return nil
}

// Release ends the ticket: first the handle's context, then the object. It may be called again after an
// error, and after the volumes are lost. A ticket that another Acquire has adopted since stays: that is
// ErrAdopted. ctx must not be the context whose end stops the work, or nothing is sent then, and the
// ticket keeps its volumes until its TTL is over.
func (h *Handle) Release(ctx context.Context) error {
	h.end(ErrReleased)
	return h.unlessAdopted(ctx, "release the ticket", func(t *v1alpha1.VolumeTicket) error {
		return h.client.delete(ctx, t, t.ResourceVersion)
	})
}

// LetGo ends the handle and not the ticket, which was asked to let go of its volumes (Request.OnYield):
// they go to their claimant at once, and the ticket asks on. Another Acquire of the same request waits
// until they are back. Call it when nothing uses the volumes any more; it may be called again after an
// error. For a ticket that is not asked to it is Leave; for one that another Acquire has adopted since
// it is ErrAdopted.
func (h *Handle) LetGo(ctx context.Context) error {
	h.end(ErrLetGo)
	return h.unlessAdopted(ctx, "let go of the volumes of the ticket", func(t *v1alpha1.VolumeTicket) error {
		if t.Yielding() == nil {
			return nil
		}
		return h.client.note(ctx, h.request, h.uid, t.ResourceVersion, map[string]string{v1alpha1.AnnotationLetsGo: v1alpha1.LetsGoValue(t.Yielding())})
	})
}

// unlessAdopted changes the present ticket, by its UID and version: again if it has changed meanwhile.
// If the ticket is gone there is nothing to do, and if another Acquire has adopted it since it is
// ErrAdopted.
func (h *Handle) unlessAdopted(ctx context.Context, what string, do func(*v1alpha1.VolumeTicket) error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		t, err := h.client.api.VolumeTickets(h.request.Namespace).Get(ctx, h.request.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && t.UID != h.uid:
			return nil
		case err == nil && t.Annotations[v1alpha1.AnnotationSession] != h.session:
			return fmt.Errorf("%s %s: %w", what, h.name(), ErrAdopted)
		case err == nil:
			err = do(t)
		}
		switch {
		case err == nil, apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("%s %s: %w", what, h.name(), err)
		case !sleep(ctx, pause):
			return fmt.Errorf("%s %s: %w", what, h.name(), context.Cause(ctx))
		}
	}
}

// Leave ends the handle and not the ticket: the process ends, or no longer leads, and the next
// one of this integrator adopts the ticket.
func (h *Handle) Leave() { h.end(ErrLeft) }

func (h *Handle) name() string { return h.request.Namespace + "/" + h.request.Name }

// waits is the error of a ticket that is not satisfied yet.
func (h *Handle) waits(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	reason, message := h.why(h.known)
	return &NotSatisfiedError{Name: h.name(), Reason: reason, Message: message, Err: err}
}

// lost is the error of a ticket that is not satisfied any more.
func (h *Handle) lost(t *v1alpha1.VolumeTicket) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = metav1.Condition{} // it had its grant since
	reason, message := h.why(t)
	return &LostError{h.name(), reason, message}
}

// see takes a version of the ticket in, nil when it is gone, and says whether the handle goes
// on.
func (h *Handle) see(t *v1alpha1.VolumeTicket) bool {
	if h.life.Err() != nil {
		return false
	}
	if t == nil || t.UID != h.uid || t.DeletionTimestamp != nil {
		h.end(&LostError{h.name(), ReasonEnded, ErrEnded.Error()})
		return false
	}
	is := meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TicketSatisfied) && !t.LetsGo() // its volumes are about to be taken
	select {
	case <-h.satisfied:
		if !is {
			h.end(h.lost(t))
			return false
		}
		if !sameGrant(h.had, t) {
			h.end(&LostError{h.name(), ReasonInterrupted, "somebody else may have had the volumes, and the ticket was granted them anew"})
			return false
		}
		h.knows(t)
		h.tellYielding(t)
		return true
	default:
	}
	h.knows(t)
	if is {
		h.had = t
		h.listens()
		close(h.satisfied)
		h.tellYielding(t)
		return true
	}
	h.tell(t)
	return true
}

// knows keeps a version of the ticket.
func (h *Handle) knows(t *v1alpha1.VolumeTicket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = t
}

// sameGrant says whether a satisfied ticket has been so without a break since it first had its volumes.
// A field of a volume that either version lacks is not compared: an older release of the controller may
// not have written it.
func sameGrant(had, now *v1alpha1.VolumeTicket) bool {
	since := func(t *v1alpha1.VolumeTicket) *metav1.Time {
		if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied); c != nil {
			return &c.LastTransitionTime
		}
		return nil
	}
	if !since(had).Equal(since(now)) || had.Node() != now.Node() {
		return false
	}
	return !slices.ContainsFunc(had.Status.Volumes, func(a v1alpha1.TicketVolumeStatus) bool {
		return slices.ContainsFunc(now.Status.Volumes, func(b v1alpha1.TicketVolumeStatus) bool {
			return a.Claim == b.Claim && a.PersistentVolume == b.PersistentVolume &&
				(differs(a.Driver, b.Driver) || differs(a.VolumeHandle, b.VolumeHandle) || differs(a.Transitions, b.Transitions))
		})
	})
}

// differs says whether two values are both known, and not the same.
func differs[T comparable](a, b T) bool {
	var unknown T
	return a != unknown && b != unknown && a != b
}

// tell calls OnWait where there is something new.
func (h *Handle) tell(t *v1alpha1.VolumeTicket) {
	if h.request.OnWait == nil {
		return
	}
	h.mu.Lock()
	reason, message := h.why(t)
	news := reason != h.reason || message != h.message
	h.reason, h.message = reason, message
	h.mu.Unlock()
	if news {
		h.request.OnWait(reason, message)
	}
}

// tellYielding calls OnYield where there is something new.
func (h *Handle) tellYielding(t *v1alpha1.VolumeTicket) {
	message := ""
	if asked := t.Yielding(); asked != nil {
		message = asked.Message
	}
	h.mu.Lock()
	news := message != h.asked
	h.asked = message
	h.mu.Unlock()
	if message != "" {
		h.ask(fmt.Errorf("%w: %s", ErrAsked, message))
	}
	if news && h.request.OnYield != nil {
		h.request.OnYield(message)
	}
}

// why is what a ticket that is not satisfied waits for: its grant, or once it is granted its
// volumes. Once it is granted, what kept it from its grant stands in condition Satisfied until the
// controller writes it anew, and is over.
func (h *Handle) why(t *v1alpha1.VolumeTicket) (reason, message string) {
	if t == nil {
		return v1alpha1.ReasonPending, ""
	}
	granted := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted)
	satisfied := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied)
	switch {
	case granted == nil:
		return v1alpha1.ReasonPending, "the controller has not said anything yet"
	case granted.Status != metav1.ConditionTrue:
		h.kept = *granted
		return granted.Reason, granted.Message
	case t.LetsGo():
		return t.Yielding().Reason, "it has let go of its volumes: " + t.Yielding().Message
	case satisfied == nil, satisfied.Status == metav1.ConditionTrue, satisfied.Reason == h.kept.Reason && satisfied.Message == h.kept.Message:
		return v1alpha1.ReasonGranted, "its volumes are on their way"
	}
	return satisfied.Reason, satisfied.Message
}
