// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

// plain says whether a pod has no possibly attachable volume. Each process answers for it, without lease
// and caches: such pods, like Moorage's scheduler, are scheduled even without a leader.
func plain(pod *corev1.Pod) bool {
	fact, err := convert.Pod(pod)
	return err == nil && len(fact.Volumes) == 0
}

func (x *Extender) leadingFor(pod *corev1.Pod) error {
	if plain(pod) {
		return nil
	}
	return x.leading()
}

func unchanged(p wire.Preemption) extenderv1.ExtenderPreemptionResult {
	return extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: p.Victims}
}

// bindPlain binds a pod without volumes where this process can't reserve any. It reads the pod, since a
// bind has only its name; ours is false for a pod with volumes. The API server refuses a pod of another
// UID, and a bound pod.
func (x *Extender) bindPlain(ctx context.Context, args extenderv1.ExtenderBindingArgs) (ours bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*binding.RequestTimeout)
	defer cancel()
	pods := x.Kube.CoreV1().Pods(args.PodNamespace)
	pod, err := pods.Get(ctx, args.PodName, metav1.GetOptions{})
	switch {
	case err != nil:
		return true, fmt.Errorf("read the pod: %w", err)
	case pod.UID != args.PodUID:
		return true, errUnknownPod
	case !plain(pod):
		return false, nil
	case pod.Spec.NodeName == args.Node:
		return true, nil
	}
	err = pods.Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: args.PodNamespace, Name: args.PodName, UID: args.PodUID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: args.Node},
	}, metav1.CreateOptions{})
	if err != nil {
		return true, fmt.Errorf("bind the pod: %w", err)
	}
	return true, nil
}
