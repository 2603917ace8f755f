// SPDX-License-Identifier: Apache-2.0

package observe

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

// listPage is how many objects one request of a consistent list asks for.
const listPage = 500

// position is the version at which the pods are as they are now.
func (o *Observer) position(ctx context.Context) (string, error) {
	list, err := o.config.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("list pods consistently: %w", err)
	}
	return list.ResourceVersion, nil
}

// listPods takes in all pods with one consistent list, for an informer that
// began with an older state.
func (o *Observer) listPods(ctx context.Context) error {
	return o.listAll(ctx, "pods", func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return o.config.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, opts)
	})
}

// CatchUp takes in, by consistent lists, what claims volumes and slots as it is now: bound pods,
// VolumeAttachments and VolumeTickets. A new leader calls it when no write of the leader before can be
// under way any more, and decides afterwards. Informers that are behind then only know of claims that
// have ended meanwhile.
func (o *Observer) CatchUp(ctx context.Context) error {
	if err := o.listPods(ctx); err != nil {
		return err
	}
	err := o.listAll(ctx, "volumeattachments", func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return o.config.Kube.StorageV1().VolumeAttachments().List(ctx, opts)
	})
	if err != nil {
		return err
	}
	return o.listAll(ctx, "volumetickets", func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		return o.config.Moorage.VolumeTickets(metav1.NamespaceAll).List(ctx, opts)
	})
}

// Untouched says whether no process of Moorage has worked in the cluster yet: there
// is neither a VolumeHold nor a VolumeTicket, by a consistent list of each. Whatever
// exclusive volume a controller attaches has a hold, until nothing uses the volume any more.
func (o *Observer) Untouched(ctx context.Context) (bool, error) {
	first := metav1.ListOptions{Limit: 1}
	holds, err := o.config.Moorage.VolumeHolds().List(ctx, first)
	if err != nil {
		return false, fmt.Errorf("list volumeholds: %w", err)
	}
	tickets, err := o.config.Moorage.VolumeTickets(metav1.NamespaceAll).List(ctx, first)
	if err != nil {
		return false, fmt.Errorf("list volumetickets: %w", err)
	}
	return len(holds.Items)+len(tickets.Items) == 0, nil
}

// listAll takes in all objects of a consistent list.
func (o *Observer) listAll(ctx context.Context, what string, page pager.ListPageFunc) error {
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.ResourceVersion = "" // consistent, not from a cache
		return page(ctx, opts)
	})
	list.PageSize = listPage
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		o.Saw(object)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list %s consistently: %w", what, err)
	}
	return nil
}

// ConfirmPod reads a pod as it is now, and takes in what it finds: nil without
// an error when no pod of that UID exists in the namespace. The name proves nothing, and
// may be empty. A pod
// that the ledger knows is asked for by its own name; one that it doesn't know is looked
// for among all of the namespace, where there is none of the name.
func (o *Observer) ConfirmPod(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error) {
	known := o.Snapshot().Pod(uid)
	switch {
	case known != nil && known.Namespace != namespace:
		return nil, nil // it is of another namespace, and stays
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

// findPod looks for a pod of which only the UID is known. That there is none ends nothing:
// the ledger did not know it.
func (o *Observer) findPod(ctx context.Context, namespace, uid string) (*corev1.Pod, error) {
	var found *corev1.Pod
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.ResourceVersion = "" // consistent, not from a cache
		return o.config.Kube.CoreV1().Pods(namespace).List(ctx, opts)
	})
	list.PageSize = listPage
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if pod, ok := object.(*corev1.Pod); ok && string(pod.UID) == uid {
			found = pod
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list pods of namespace %s: %w", namespace, err)
	}
	if found != nil {
		o.Saw(found)
	}
	return found, nil
}
