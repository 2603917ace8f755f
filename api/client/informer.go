// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// NewVolumeTicketInformer returns an informer on the tickets of all namespaces,
// indexed by namespace. It does not start before Run, and never resyncs: what
// Moorage decides is level-triggered by its own queues.
func NewVolumeTicketInformer(c Interface) cache.SharedIndexInformer {
	return newInformer(c.VolumeTickets(metav1.NamespaceAll), &v1alpha1.VolumeTicket{},
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// NewVolumeHoldInformer returns an informer on all holds; see
// NewVolumeTicketInformer.
func NewVolumeHoldInformer(c Interface) cache.SharedIndexInformer {
	return newInformer(c.VolumeHolds(), &v1alpha1.VolumeHold{}, cache.Indexers{})
}

// NewAttachPolicyInformer returns an informer on all policies; see
// NewVolumeTicketInformer.
func NewAttachPolicyInformer(c Interface) cache.SharedIndexInformer {
	return newInformer(c.AttachPolicies(), &v1alpha1.AttachPolicy{}, cache.Indexers{})
}

// NewAllNodeMountReportInformer returns an informer on what all nodes have; see
// NewVolumeTicketInformer.
func NewAllNodeMountReportInformer(c Interface) cache.SharedIndexInformer {
	return newInformer(c.NodeMountReports(), &v1alpha1.NodeMountReport{}, cache.Indexers{})
}

// NewNodeMountReportListWatch lists and watches what one node has, the node's own.
func NewNodeMountReportListWatch(c Interface, node string) cache.ListerWatcher {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, node).String()
	own := c.NodeMountReports()
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = only
			return own.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = only
			return own.Watch(ctx, opts)
		},
	}
	return cache.ToListWatcherWithWatchListSemantics(listWatch, own)
}

// newInformer binds list and watch of a kind to a shared informer.
func newInformer[T, L runtime.Object](client Typed[T, L], example T, indexers cache.Indexers) cache.SharedIndexInformer {
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, opts)
		},
	}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(listWatch, client), example, 0, indexers)
}
