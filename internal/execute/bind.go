// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// bindPod binds a pod to a node. The API server compares UID and resource version with the
// pod's (pkg/registry/core/pod/storage, BindingREST).
func (e *Executor) bindPod(ctx context.Context, r flow.Request) (flow.Answer, error) {
	namespace, name := split(r.Key)
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(r.UID), ResourceVersion: r.Version},
		Target:     corev1.ObjectReference{Kind: "Node", Name: string(r.Node)},
	}
	_, err := call(ctx, e, r.Until, func(ctx context.Context) (*corev1.Binding, error) {
		return binding, e.config.Kube.CoreV1().Pods(namespace).Bind(ctx, binding, metav1.CreateOptions{})
	})
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		e.unsettled.extend(e.config.Now().Add(e.outlast())) // the API server says so of failures of its storage, too
	}
	return answerOf(r, err), err
}

// fencePod gives a pod a new resource version.
func (e *Executor) fencePod(ctx context.Context, r flow.Request) (flow.Answer, error) {
	namespace, name := split(r.Key)
	patch, err := translate.BindFence(r.UID, r.Version, e.config.Token())
	if err != nil {
		return flow.Answer{Result: flow.NotSent}, err
	}
	return ask(ctx, e, r, podFact, func(ctx context.Context) (*corev1.Pod, error) {
		return e.config.Kube.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	})
}

func podFact(p *corev1.Pod) ledger.Event {
	fact, _ := translate.Pod(p) // a broken source names no volume
	return fact
}
