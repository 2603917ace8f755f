// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const listPage = 500

func (o *Observer) position(ctx context.Context) (string, error) {
	list, err := o.config.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("list pods consistently: %w", err)
	}
	return list.ResourceVersion, nil
}

// listPods makes up for an informer that began with an older state.
func (o *Observer) listPods(ctx context.Context) error {
	return o.listAll(ctx, Pods, listOf(o.config.Kube.CoreV1().Pods(metav1.NamespaceAll).List))
}

// CatchUp takes in, by consistent lists, bound pods, Nodes, VolumeAttachments, VolumeHolds, VolumeTickets
// and PersistentVolumes. A new leader calls it before its first decision, when no write of the former
// leader can be under way. Informers that are behind then only know of claims that have ended.
func (o *Observer) CatchUp(ctx context.Context) error {
	kube, moorage := o.config.Kube, o.config.Moorage
	for _, each := range []struct {
		kind Kind
		page pager.ListPageFunc
	}{
		{Pods, listOf(kube.CoreV1().Pods(metav1.NamespaceAll).List)},
		{Nodes, listOf(kube.CoreV1().Nodes().List)},
		{Attachments, listOf(kube.StorageV1().VolumeAttachments().List)},
		{Holds, listOf(moorage.VolumeHolds().List)},
		{Tickets, listOf(moorage.VolumeTickets(metav1.NamespaceAll).List)},
		{PersistentVolumes, listOf(kube.CoreV1().PersistentVolumes().List)},
	} {
		if o.feeds[each.kind] == nil {
			continue
		}
		if err := o.listAll(ctx, each.kind, each.page); err != nil {
			return err
		}
	}
	return nil
}

func listOf[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) pager.ListPageFunc {
	return func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return list(ctx, opts) }
}

func (o *Observer) listAll(ctx context.Context, kind Kind, page pager.ListPageFunc) error {
	return o.eachOf(ctx, kind, page, func(object runtime.Object) error {
		o.Saw(object)
		return nil
	})
}

func (o *Observer) eachOf(ctx context.Context, kind Kind, page pager.ListPageFunc, f func(runtime.Object) error) error {
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.ResourceVersion = "" // consistent
		return page(ctx, opts)
	})
	list.PageSize = listPage
	if err := list.EachListItem(ctx, metav1.ListOptions{}, f); err != nil {
		return fmt.Errorf("list %s consistently: %w", kind, err)
	}
	return nil
}

// ConfirmPod reads the present pod, and takes it in: nil without an error if no pod of that UID exists in
// the namespace. The name proves nothing, and may be empty. An unknown pod is searched in the namespace if
// the name fails.
func (o *Observer) ConfirmPod(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error) {
	known := o.Snapshot().Pod(uid)
	switch {
	case known != nil && known.Namespace != namespace:
		return nil, nil // in another namespace: stays
	case known != nil:
		name = known.Name
	case name == "":
		return o.findPod(ctx, namespace, uid)
	}
	pod, err := o.config.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && string(pod.UID) == uid:
		o.Saw(pod)
		return pod, nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read pod %s/%s: %w", namespace, name, err)
	case known != nil:
		o.Apply(ledger.PodGone{UID: uid})
		return nil, nil
	case o.feeds[Pods].showedEnd(namespace, name, uid):
		return nil, nil
	}
	return o.findPod(ctx, namespace, uid)
}

// findPod searches by UID. A missing pod ends nothing: the ledger did not know it.
func (o *Observer) findPod(ctx context.Context, namespace, uid string) (*corev1.Pod, error) {
	var found *corev1.Pod
	err := o.eachOf(ctx, Pods, listOf(o.config.Kube.CoreV1().Pods(namespace).List), func(object runtime.Object) error {
		if pod, ok := object.(*corev1.Pod); ok && string(pod.UID) == uid {
			found = pod
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", namespace, err)
	}
	if found != nil {
		o.Saw(found)
	}
	return found, nil
}
