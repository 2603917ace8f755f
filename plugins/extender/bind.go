// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/plugins/internal/words"
)

var errClientGone = errors.New("the scheduler did not wait for the answer")

// bind counts the pod's volumes at the node and binds the pod: all of it, or nothing. A repeated request
// does the rest.
//
// It waits for a running request, even if the scheduler does not: its outcome must be known.
func (x *Extender) bind(ctx context.Context, args extenderv1.ExtenderBindingArgs) error {
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
	verdict := x.Placer.Reserve(*pod, node, func(s ledger.Snapshot) rules.Verdict {
		return x.arbiter.Fit(s, rules.PodRequest(s, pod), node, x.Now())
	})
	if !verdict.Allowed() {
		messages, _ := words.Node(verdict, node)
		return errors.New(joined(messages))
	}
	bound := false
	defer func() {
		if !bound {
			x.Placer.Unreserve(pod.UID)
		}
	}()
	if err := x.Placer.Bind(ctx, object, pod, args.Node); err != nil {
		return err
	}
	bound = true
	x.requeuer.Leave(args.PodUID)
	return nil
}

// unbound finds the pod to bind; nil: already bound there. It reads a pod that the ledger lacks, or that is
// reserved.
func (x *Extender) unbound(ctx context.Context, args extenderv1.ExtenderBindingArgs) (*ledger.Pod, *corev1.Pod, error) {
	uid := string(args.PodUID)
	pod := x.Facts.Snapshot().Pod(uid)
	if pod == nil || pod.Reserved {
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
	case pod.Reserved:
		return nil, nil, fmt.Errorf("another scheduler is binding the pod to %s", pod.Node)
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
