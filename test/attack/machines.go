// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

const (
	attached  = `{"status":{"volumesAttached":[{"name":"kubernetes.io/csi/disk.example.com^x","devicePath":""}]}}`
	addresses = `{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}}`
)

// nodes have the credentials of a kubelet.
func nodes() []attempt {
	return []attempt{
		{node(), "volumesAttached of its own", byAttach, patchNode(attached)},
		{node(), "the status of another node", "NodeRestriction", func(ctx context.Context, s *Scene, c clients) error {
			_, err := c.kube.CoreV1().Nodes().Patch(ctx, s.another(ctx), types.StrategicMergePatchType, []byte(addresses), metav1.PatchOptions{}, "status")
			return err
		}},
		{node(), "the volume status of its pod", byStatus, patchPod(annotated(v1alpha1.AnnotationVolumeStatus, "x"), "status")},
		{node(), "a fence on its pod", byMarks, patchPod(annotated(v1alpha1.AnnotationBindFence, "x"), "status")},
		{node(), "the condition SafeToMount of its pod", byStatus, patchPod(conditioned(v1alpha1.PodSafeToMount), "status")},
		{node(), "a ticket", byRBAC, ticketOf(v1alpha1.TicketManual, nil)},
		{node(), "a forged VolumeHold", byRBAC, hold},
		{node(), "deleting a VolumeAttachment", "the Node authorizer", func(ctx context.Context, _ *Scene, c clients) error {
			return c.kube.StorageV1().VolumeAttachments().Delete(ctx, "any", metav1.DeleteOptions{})
		}},
	}
}

// another names a node that is not the attackers' pod's.
func (s *Scene) another(ctx context.Context) string {
	list, err := s.admin.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	for _, n := range list.Items {
		if n.Name != s.pod.Spec.NodeName {
			return n.Name
		}
	}
	return ""
}

// ownAccounts are what somebody does with a token of Moorage's.
func ownAccounts() []attempt {
	lease := func(namespace func(*Scene) string, name string) try {
		return func(ctx context.Context, s *Scene, c clients) error {
			_, err := c.kube.CoordinationV1().Leases(namespace(s)).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		}
	}
	system := func(*Scene) string { return metav1.NamespaceSystem }
	moorages := func(s *Scene) string { return s.Namespace }
	remove := func(ctx context.Context, s *Scene, c clients) error {
		return c.kube.CoreV1().Pods(s.Victim).Delete(ctx, s.victimPod.Name, metav1.DeleteOptions{})
	}
	secrets := func(ctx context.Context, s *Scene, c clients) error {
		_, err := c.kube.CoreV1().Secrets(s.Namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	controller, scheduler := own(v1alpha1.ControllerName), own(v1alpha1.SchedulerName)
	return []attempt{
		{controller, "a node's addresses", byOwn, patchNode(addresses)},
		{controller, "a node's condition Ready", byOwn, patchNode(conditioned("Ready"))},
		{controller, "a node's annotation", byOwn, patchNode(annotated("volumes.kubernetes.io/controller-managed-attach-detach", "false"))},
		{controller, "a pod's phase", byOwn, patchPod(`{"status":{"phase":"Failed"}}`, "status")},
		{controller, "deleting a running pod", byOwn, remove},
		{controller, "another's Lease", byLeases, lease(moorages, "another")},
		{controller, "a ticket", byRBAC, ticketOf(v1alpha1.TicketManual, nil)},
		{controller, "Secrets", byRBAC, secrets},
		{scheduler, "a grant", byRBAC, forgeStatus(`{"status":{"conditions":[]}}`)},
		{scheduler, "a ticket of a person's type", byTickets + " or " + byOwn, ticketOf(v1alpha1.TicketManual, nil)},
		{scheduler, "another scheduler's Lease", byLeases, lease(system, "attack")},
		{scheduler, "a forged VolumeHold", byRBAC, hold},
		{scheduler, "Secrets", byRBAC, secrets},
		{own(v1alpha1.WebhookName), "Secrets", byRBAC, secrets},
		{own(v1alpha1.WebhookName), "deleting a pod", byRBAC, remove},
	}
}
