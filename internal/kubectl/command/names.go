// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
)

// mostNames bounds what a completion reads: nobody looks through more.
const mostNames = 500

func some() metav1.ListOptions { return metav1.ListOptions{Limit: mostNames} }

// PodNames are the pods of the namespace. An error gives no names: a shell has
// nowhere to show it.
func PodNames(ctx context.Context, c *cluster.Cluster, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	list, err := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, some())
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(p *corev1.Pod) string { return p.Name })
}

// ClaimNames are the claims of the namespace.
func ClaimNames(ctx context.Context, c *cluster.Cluster, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	list, err := c.Kube.CoreV1().PersistentVolumeClaims(c.Namespace).List(ctx, some())
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(p *corev1.PersistentVolumeClaim) string { return p.Name })
}

// VolumeNames are the PersistentVolumes.
func VolumeNames(ctx context.Context, c *cluster.Cluster, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	list, err := c.Kube.CoreV1().PersistentVolumes().List(ctx, some())
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(p *corev1.PersistentVolume) string { return p.Name })
}

// TicketNames are the VolumeTickets of the namespace.
func TicketNames(ctx context.Context, c *cluster.Cluster, _ []string) []string {
	list, err := c.Moorage.VolumeTickets(c.Namespace).List(ctx, some())
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(t *v1alpha1.VolumeTicket) string { return t.Name })
}

// NodeNames are the nodes, whatever was named before.
func NodeNames(ctx context.Context, c *cluster.Cluster, _ []string) []string {
	list, err := c.Kube.CoreV1().Nodes().List(ctx, some())
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(n *corev1.Node) string { return n.Name })
}

func namesOf[T any](items []T, name func(*T) string) []string {
	var names []string
	for i := range items {
		names = append(names, name(&items[i]))
	}
	return names
}

// Namespaces are the namespaces.
func Namespaces(ctx context.Context, c *cluster.Cluster, _ []string) []string {
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, some())
	if err != nil {
		return nil
	}
	return namesOf(list.Items, func(n *corev1.Namespace) string { return n.Name })
}
