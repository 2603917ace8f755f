// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// kind is how objects of one kind are read.
type kind struct {
	resource   string // plural and group, as kubectl auth can-i takes it
	namespaced bool
	reader     func(c *Cluster, namespace string) reader
	// beside: it is shown beside the rest, of which nothing is unknown without it.
	beside bool
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
	return []kind{
		{resource: "volumetickets.moorage.dev", namespaced: true, reader: func(c *Cluster, ns string) reader { return readerOf(c.Moorage.VolumeTickets(ns)) }},
		{resource: "volumeholds.moorage.dev", reader: func(c *Cluster, _ string) reader { return readerOf(c.Moorage.VolumeHolds()) }},
		{resource: "attachpolicies.moorage.dev", reader: func(c *Cluster, _ string) reader { return readerOf(c.Moorage.AttachPolicies()) }},
		{resource: "pods", namespaced: true, reader: func(c *Cluster, ns string) reader { return readerOf(c.Kube.CoreV1().Pods(ns)) }},
		{resource: "persistentvolumeclaims", namespaced: true, reader: func(c *Cluster, ns string) reader { return readerOf(c.Kube.CoreV1().PersistentVolumeClaims(ns)) }},
		{resource: "persistentvolumes", reader: func(c *Cluster, _ string) reader { return readerOf(c.Kube.CoreV1().PersistentVolumes()) }},
		{resource: "nodes", reader: func(c *Cluster, _ string) reader { return readerOf(c.Kube.CoreV1().Nodes()) }},
		{resource: "storageclasses.storage.k8s.io", reader: func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().StorageClasses()) }},
		{resource: "csidrivers.storage.k8s.io", reader: func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().CSIDrivers()) }},
		{resource: "csinodes.storage.k8s.io", reader: func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().CSINodes()) }},
		{resource: "volumeattachments.storage.k8s.io", reader: func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().VolumeAttachments()) }},
		{resource: "nodevolumes.moorage.dev", reader: func(c *Cluster, _ string) reader { return readerOf(c.Moorage.NodeVolumes()) }, beside: true},
	}
}
