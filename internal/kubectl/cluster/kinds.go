// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// kind is how objects of one kind are read.
type kind struct {
	resource   string // plural and group, as kubectl auth can-i takes it
	served     schema.GroupVersionResource
	namespaced bool
	empty      func() runtime.Object
	reader     func(c *Cluster, namespace string) reader
	// beside: it is shown beside the rest, of which nothing is unknown without it.
	beside bool
}

// typed makes an object of what JSON has of it.
func (k kind) typed(content map[string]any) (runtime.Object, error) {
	object := k.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		return nil, err
	}
	return slim(object), nil
}

// besideTheRest is the kind, shown beside the rest.
func (k kind) besideTheRest() kind {
	k.beside = true
	return k
}

// kindOf is a kind whose objects are T.
func kindOf[T any, P interface {
	*T
	runtime.Object
}](served schema.GroupVersion, plural string, namespaced bool, reader func(c *Cluster, namespace string) reader) kind {
	r := served.WithResource(plural)
	return kind{resource: r.GroupResource().String(), served: r, namespaced: namespaced, empty: func() runtime.Object { return P(new(T)) }, reader: reader}
}

// reader reads one kind, in one namespace or all.
type reader struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// typed is the part of a typed client that reads.
type typed[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func readerOf[L runtime.Object](c typed[L]) reader {
	return reader{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) },
		watch: c.Watch,
	}
}

// kinds lists what the ledger is made of. The tickets come first: a reservation
// that ends while the lists are made is then still seen as the bound pod.
func kinds() []kind {
	own, core, storage := v1alpha1.SchemeGroupVersion, corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	return []kind{
		kindOf[v1alpha1.VolumeTicket](own, "volumetickets", true, func(c *Cluster, ns string) reader { return readerOf(c.Moorage.VolumeTickets(ns)) }),
		kindOf[v1alpha1.VolumeHold](own, "volumeholds", false, func(c *Cluster, _ string) reader { return readerOf(c.Moorage.VolumeHolds()) }),
		kindOf[v1alpha1.AttachPolicy](own, "attachpolicies", false, func(c *Cluster, _ string) reader { return readerOf(c.Moorage.AttachPolicies()) }),
		kindOf[corev1.Pod](core, "pods", true, func(c *Cluster, ns string) reader { return readerOf(c.Kube.CoreV1().Pods(ns)) }),
		kindOf[corev1.PersistentVolumeClaim](core, "persistentvolumeclaims", true, func(c *Cluster, ns string) reader {
			return readerOf(c.Kube.CoreV1().PersistentVolumeClaims(ns))
		}),
		kindOf[corev1.PersistentVolume](core, "persistentvolumes", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.CoreV1().PersistentVolumes()) }),
		kindOf[corev1.Node](core, "nodes", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.CoreV1().Nodes()) }),
		kindOf[storagev1.StorageClass](storage, "storageclasses", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().StorageClasses()) }),
		kindOf[storagev1.CSIDriver](storage, "csidrivers", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().CSIDrivers()) }),
		kindOf[storagev1.CSINode](storage, "csinodes", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().CSINodes()) }),
		kindOf[storagev1.VolumeAttachment](storage, "volumeattachments", false, func(c *Cluster, _ string) reader {
			return readerOf(c.Kube.StorageV1().VolumeAttachments())
		}),
		kindOf[v1alpha1.NodeVolumes](own, "nodevolumes", false, func(c *Cluster, _ string) reader { return readerOf(c.Moorage.NodeVolumes()) }).besideTheRest(),
	}
}
