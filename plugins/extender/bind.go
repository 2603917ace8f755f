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
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/plugins/internal/words"
)

// errClientGone says why a bind comes to nothing.
var errClientGone = errors.New("the scheduler did not wait for the answer")

// bind counts the pod's volumes at the node and binds the pod: all of it, or nothing. Asked again
// for the same, whether the first time came to something or not, it does what is left to do.
//
// Once the request is under way it is waited for, whether or not the scheduler does: what became of
// it must be known.
func (x *extender) bind(ctx context.Context, t *term, args extenderv1.ExtenderBindingArgs) error {
	over, err := x.podLocks.lock(ctx, string(args.PodUID))
	if err != nil {
		return fmt.Errorf("another bind of the pod is under way: %w", errClientGone)
	}
	defer over()
	pod, object, err := x.unbound(ctx, args)
	if pod == nil || err != nil {
		return err
	}
	node := ledger.NodeName(args.Node)
	if err := x.reserve(pod, node); err != nil {
		return err
	}
	bound := false
	defer func() {
		if !bound {
			x.touched(x.Facts.Ledger().Unreserve(x.Now(), pod.UID))
		}
	}()
	annotations, err := binding.Annotations(x.Facts.Snapshot(), object, pod, args.Node)
	if err != nil {
		return err
	}
	if err := t.binder.Bind(ctx, object, args.Node, annotations); err != nil {
		return err
	}
	bound = true
	x.requeuer.Leave(args.PodUID)
	return nil
}

// binder sends requests that end before the lease does.
func (x *extender) binder(until func() time.Time) *binding.Binder {
	return &binding.Binder{Confirm: x.Facts.ConfirmPod, Change: binding.ChangeBy(x.Kube), Until: until, Send: func(ctx context.Context, b *corev1.Binding) error {
		ctx, cancel := context.WithTimeout(ctx, x.WriteTimeout)
		defer cancel()
		return x.Kube.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
	}}
}

// unbound finds the pod to bind; nil when it is bound to the node already. It reads a pod that the
// ledger does not have.
func (x *extender) unbound(ctx context.Context, args extenderv1.ExtenderBindingArgs) (*ledger.Pod, *corev1.Pod, error) {
	uid := string(args.PodUID)
	pod := x.Facts.Snapshot().Pod(uid)
	if pod == nil {
		if _, err := x.Facts.ConfirmPod(ctx, args.PodNamespace, args.PodName, uid); err != nil {
			return nil, nil, err
		}
		pod = x.Facts.Snapshot().Pod(uid)
	}
	switch {
	case pod == nil:
		return nil, nil, errUnknownPod
	case pod.Namespace != args.PodNamespace || pod.Name != args.PodName:
		return nil, nil, serving.BadRequest("the UID %s is that of pod %s/%s, not of %s/%s", uid, pod.Namespace, pod.Name, args.PodNamespace, args.PodName)
	case pod.Node == ledger.NodeName(args.Node):
		return nil, nil, nil
	case pod.Node != "":
		return nil, nil, fmt.Errorf("the pod is bound to %s already", pod.Node)
	case pod.Phase != ledger.PodLive:
		return nil, nil, binding.ErrPodGone
	}
	object, ok := x.Facts.Pod(pod.Namespace, pod.Name)
	if !ok || string(object.UID) != uid {
		return nil, nil, errUnknownPod
	}
	return pod, object, nil
}

// reserve has the ledger count the pod's volumes at the node, after judging the
// node by the newest snapshot.
func (x *extender) reserve(pod *ledger.Pod, node ledger.NodeName) error {
	x.reserving.Lock()
	defer x.reserving.Unlock()
	s := x.Facts.Snapshot()
	if verdict := x.arbiter.Fit(s, arbiter.PodRequest(s, pod), node, x.Now()); !verdict.Allowed() {
		messages, _ := words.Node(verdict, node)
		return errors.New(joined(messages))
	}
	x.touched(x.Facts.Ledger().Reserve(x.Now(), *pod, node))
	return nil
}
