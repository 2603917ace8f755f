// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
	"github.com/moorage-dev/moorage/plugins/internal/words"
)

// Why a bind comes to nothing.
var (
	errClientGone = errors.New("the scheduler did not wait for the answer")
	errTermOver   = errors.New("this process does not lead any more")
)

// bind reserves the pod's volumes at the node, waits for the controller's grant
// and binds the pod: all of it, or nothing. Asked again for the same, whether
// the first time came to something or not, it does what is left to do.
func (x *extender) bind(ctx context.Context, t *term, args extenderv1.ExtenderBindingArgs) error {
	if !t.begin() {
		return errNotLeading
	}
	defer t.end()
	latest := x.Now().Add(x.GrantDeadline)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(errTermOver) })()
	over, err := x.podLocks.lock(ctx, string(args.PodUID))
	if err != nil {
		return ending(ctx, "another bind of the pod is under way")
	}
	defer over()
	pod, err := x.unbound(ctx, args)
	if pod == nil || err != nil {
		return err
	}
	r, err := x.reserve(pod, ledger.NodeName(args.Node))
	if err != nil {
		return err
	}
	if r == nil {
		return x.post(t, args, nil)
	}
	if r.Local {
		err = x.post(t, args, nil)
	} else if err = x.obtain(ctx, r, latest); err == nil {
		err = x.post(t, args, r)
	}
	if err != nil {
		x.giveUp(ctx, r)
		return err
	}
	x.requeuer.Leave(args.PodUID)
	x.book.Enqueue(r.Ticket.ID)
	return nil
}

// giveUp withdraws a reservation, unless the pod has turned out to be bound.
func (x *extender) giveUp(ctx context.Context, r *reservation.Reservation) {
	x.book.Withdraw(context.WithoutCancel(ctx), r.Ticket.Pod)
}

// unbound finds the pod to bind; nil when it is bound to the node already. A
// pod of which an earlier bind's outcome may not have been seen yet is read as
// it is now.
func (x *extender) unbound(ctx context.Context, args extenderv1.ExtenderBindingArgs) (*ledger.Pod, error) {
	uid := string(args.PodUID)
	pod := x.Facts.Snapshot().Pod(uid)
	if pod == nil || x.book.Of(uid) != nil {
		found, err := x.Facts.ConfirmPod(ctx, args.PodNamespace, args.PodName, uid)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return nil, errUnknownPod
		}
		pod = x.Facts.Snapshot().Pod(uid)
	}
	switch {
	case pod == nil:
		return nil, errUnknownPod
	case pod.Namespace != args.PodNamespace || pod.Name != args.PodName:
		return nil, serving.BadRequest("the UID %s is that of pod %s/%s, not of %s/%s", uid, pod.Namespace, pod.Name, args.PodNamespace, args.PodName)
	case pod.Node == ledger.NodeName(args.Node):
		return nil, nil
	case pod.Node != "":
		return nil, fmt.Errorf("the pod is bound to %s already", pod.Node)
	case pod.Phase != ledger.PodLive:
		return nil, reservation.ErrPodGone
	}
	return pod, nil
}

// reserve has the ledger count the pod's volumes at the node, after judging the
// node by the newest snapshot. Nil for a pod that needs no reservation.
func (x *extender) reserve(pod *ledger.Pod, node ledger.NodeName) (*reservation.Reservation, error) {
	x.reserving.Lock()
	defer x.reserving.Unlock()
	s := x.Facts.Snapshot()
	tickets, verdict := x.arbiter.Reserve(s, pod, node, x.Name, x.Now())
	if !verdict.Allowed() {
		messages, _ := words.Node(verdict, node)
		return nil, errors.New(joined(messages))
	}
	if len(tickets) == 0 {
		return nil, nil
	}
	object, ok := x.Facts.Pod(pod.Namespace, pod.Name)
	if !ok || string(object.UID) != pod.UID {
		return nil, errUnknownPod
	}
	request := arbiter.PodRequest(s, pod)
	r := reservation.New(object, tickets[0], reservation.Follows(x.arbiter, s, request, node))
	r.Local = !request.Attachable(s)
	return r, x.book.Open(r)
}

// obtain writes the reservation's ticket and waits until the controller has
// granted it, and until nothing else stands against the bind.
func (x *extender) obtain(ctx context.Context, r *reservation.Reservation, latest time.Time) error {
	began := x.Now()
	limit := min(x.patience(r), latest.Sub(began)).Round(time.Millisecond) // people read it
	writing, written := x.book.Write(ctx, r)
	if !written {
		return reservation.ErrEnded
	}
	outcome, ended := x.book.WaitForGrant(writing, r, limit, 1)
	switch {
	case ended:
		return ending(ctx, "the pod is not bound")
	case outcome.Refused:
		x.requeuer.Refuse(r.Pod.UID, r.Ticket.Node, outcome.Message)
	}
	if outcome.Message != "" {
		return errors.New(outcome.Message)
	}
	took := x.Now().Sub(began)
	x.metrics.granted(took)
	x.book.While(r, r.Allow)
	settling, cancel := context.WithTimeoutCause(ctx, limit-took, fmt.Errorf("still so after %s", limit))
	defer cancel()
	return x.waitBeforeBind(settling, r)
}

// waitBeforeBind waits until what unbound claims became is granted, too, and until
// tickets with other parameters have let go of the pod's volumes.
func (x *extender) waitBeforeBind(ctx context.Context, r *reservation.Reservation) error {
	for x.book.FollowsGrant(x.arbiter, r) {
		waitsFor, err := x.book.PendingBeforeBind(x.arbiter, r)
		if errors.Is(err, reservation.ErrRefused) {
			x.requeuer.Refuse(r.Pod.UID, r.Ticket.Node, err.Error())
		}
		if err != nil {
			return err
		}
		if waitsFor == "" {
			break
		}
		select {
		case <-ctx.Done():
			return ending(ctx, waitsFor)
		case <-r.News():
		}
	}
	if ctx.Err() != nil {
		return ending(ctx, "the pod is not bound")
	}
	return nil
}

// ending says what was waited for when a context ended, and why it did.
func ending(ctx context.Context, waitsFor string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) {
		cause = errClientGone
	}
	return fmt.Errorf("%s: %w", waitsFor, cause)
}

// patience is how long a reservation may wait for its grant by the policies of
// its volumes, and by what the scheduler itself waits.
func (x *extender) patience(r *reservation.Reservation) time.Duration {
	s := x.Facts.Snapshot()
	if pod := s.Pod(r.Ticket.Pod); pod != nil {
		if limit := reservation.GrantTimeout(s, arbiter.PodRequest(s, pod)); limit > 0 {
			return min(limit, x.GrantDeadline)
		}
	}
	return x.GrantDeadline
}

// post binds the pod, by its reservation if it has one. Once the request is under way
// it is waited for, whether or not the scheduler does: what became of it must be
// known. Its deadline lies inside the lease. A pod that is bound to the node is bound,
// whoever did it and whatever the answer was.
func (x *extender) post(t *term, args extenderv1.ExtenderBindingArgs, r *reservation.Reservation) error {
	send := func(ctx context.Context, binding *corev1.Binding) error {
		deadline := x.Now().Add(x.WriteTimeout)
		if until := t.until(); until.Before(deadline) {
			deadline = until
		}
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		return x.Kube.CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 2*x.WriteTimeout)
	defer cancel()
	if r != nil {
		return x.book.Bind(ctx, r, send)
	}
	failed := send(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: args.PodNamespace, Name: args.PodName, UID: args.PodUID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: args.Node},
	})
	if failed == nil {
		return nil
	}
	pod, err := x.Facts.ConfirmPod(ctx, args.PodNamespace, args.PodName, string(args.PodUID))
	if err == nil && pod != nil && pod.Spec.NodeName == args.Node {
		return nil
	}
	return fmt.Errorf("bind the pod: %w", failed)
}
