// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// readLeases reads the Leases of components, and those of nodes where one of the nodes is not
// ready: what is said of it depends on whether its kubelet lives. What may not be read is
// left out. A file has them as they were up to LeasesAgain before its time, and does not say when that
// was: not before the last renewal in it.
func (c *Cluster) readLeases(ctx context.Context, nodes []*corev1.Node) facts.Leases {
	read := facts.Leases{At: c.Clock()}
	components, err := c.leasesIn(ctx, metav1.NamespaceAll, fields.OneTermNotEqualSelector("metadata.namespace", corev1.NamespaceNodeLease))
	if err != nil {
		return read
	}
	read.Components, read.Seen = components, true
	if facts.AnyNotReady(nodes) {
		if of, err := c.leasesIn(ctx, corev1.NamespaceNodeLease, fields.Everything()); err == nil {
			read.Nodes = of
		}
	}
	if c.Kept != nil {
		read.At = read.LastRenewal(read.At.Add(-LeasesAgain), read.At)
	}
	return read
}

func (c *Cluster) leasesIn(ctx context.Context, namespace string, which fields.Selector) ([]coordinationv1.Lease, error) {
	list, err := c.Kube.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{FieldSelector: which.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
