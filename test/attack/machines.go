// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

const (
	attached       = `{"status":{"volumesAttached":[{"name":"kubernetes.io/csi/disk.example.com^x","devicePath":""}]}}`
	manyConditions = 257
	// An AttachPolicy may name this condition to free volumes.
	fencedByIPMI = v1alpha1.FencedConditionPrefix + "ipmi"
	cutOff       = v1alpha1.NetworkFencePrefix + "disk.example.com"
	addresses    = `{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}}`
)

func nodes() []attempt {
	return []attempt{
		{node(), "volumesAttached of its own", byAttach, patchNode(attached)},
		{node(), "the status of another node", "NodeRestriction", func(ctx context.Context, s *Scene, c clients) error {
			_, err := c.kube.CoreV1().Nodes().Patch(ctx, s.another(ctx), types.StrategicMergePatchType, []byte(addresses), metav1.PatchOptions{}, "status")
			return err
		}},
		{node(), fmt.Sprintf("%d conditions of its own", manyConditions), byFenced, manyConditionsOfNode},
		{node(), "a condition that its own machine is fenced", byFenced, patchNode(conditioned(fencedByIPMI))},
		{node(), "a condition that the storage has cut its own machine off", byFenced, patchNode(conditioned(cutOff))},
		{node(), "a Node that is fenced from its beginning", "NodeRestriction or " + byFenced, fencedNode},
		{node(), "what it has of volumes, in moorage-node's place", byRBAC, wordOf(func(s *Scene) string { return s.pod.Spec.NodeName })},
		{node(), "a ticket", byRBAC, ticketOf(v1alpha1.TicketManual, nil)},
		{node(), "a forged VolumeHold", byRBAC, hold},
		{node(), "deleting a VolumeAttachment", "the Node authorizer", func(ctx context.Context, _ *Scene, c clients) error {
			return c.kube.StorageV1().VolumeAttachments().Delete(ctx, "any", metav1.DeleteOptions{})
		}},
	}
}

// The number exceeds what a policy looks at.
func manyConditionsOfNode(ctx context.Context, s *Scene, c clients) error {
	var list []string
	for i := range manyConditions {
		list = append(list, fmt.Sprintf(`{"type":"%s%d","status":"True"}`, v1alpha1.FencedConditionPrefix, i))
	}
	return patchNode(`{"status":{"conditions":[`+strings.Join(list, ",")+`]}}`)(ctx, s, c)
}

func fencedNode(ctx context.Context, s *Scene, c clients) error {
	_, err := c.kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.pod.Spec.NodeName},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: fencedByIPMI, Status: corev1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	return err
}

func wordOf(node func(*Scene) string) try {
	return func(ctx context.Context, s *Scene, c clients) error {
		_, err := c.dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceNodeMountReports)).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.KindNodeMountReport, "metadata": map[string]any{"name": node(s)},
		}}, metav1.CreateOptions{})
		return err
	}
}

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

func ownAccounts() []attempt {
	lease := func(namespace func(*Scene) string, name string) try {
		return func(ctx context.Context, s *Scene, c clients) error {
			_, err := c.kube.CoordinationV1().Leases(namespace(s)).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		}
	}
	system := func(*Scene) string { return metav1.NamespaceSystem }
	remove := func(ctx context.Context, s *Scene, c clients) error {
		return c.kube.CoreV1().Pods(s.Victim).Delete(ctx, s.victimPod.Name, metav1.DeleteOptions{})
	}
	secrets := func(ctx context.Context, s *Scene, c clients) error {
		_, err := c.kube.CoreV1().Secrets(s.Namespace).List(ctx, metav1.ListOptions{})
		return err
	}
	controller, scheduler, agent := own(v1alpha1.ControllerName), own(v1alpha1.SchedulerName), own(v1alpha1.NodeName)
	return []attempt{
		{controller, "a node's addresses", byOwn, patchNode(addresses)},
		{controller, "a node's condition Ready", byOwn, patchNode(conditioned("Ready"))},
		{controller, "a condition that a machine is fenced", byOwn + " or " + byFenced, patchNode(conditioned(fencedByIPMI))},
		{controller, "a condition that a storage has cut a machine off, without networkFences.enabled", byFenced, patchNode(conditioned(cutOff))},
		{controller, "a node's annotation", byOwn, patchNode(annotated("volumes.kubernetes.io/controller-managed-attach-detach", "false"))},
		{controller, "a pod's phase", byOwn, patchPod(`{"status":{"phase":"Failed"}}`, "status")},
		{controller, "deleting a running pod", byOwn, remove},
		{controller, "another's Lease", byRBAC, lease(system, "attack")},
		{controller, "a ticket of a person's type", byTickets, ticketOf(v1alpha1.TicketManual, nil)},
		{controller, "Secrets", byRBAC, secrets},
		{scheduler, "a grant", byRBAC, forgeStatus(`{"status":{"conditions":[]}}`)},
		{scheduler, "a ticket of a person's type", byRBAC, ticketOf(v1alpha1.TicketManual, nil)},
		{scheduler, "a forged VolumeHold", byRBAC, hold},
		{scheduler, "Secrets", byRBAC, secrets},
		{agent, "what another node has of volumes", byWord, wordOf(func(s *Scene) string { return s.elsewhere })},
		{agent, "a condition that its machine is fenced", byRBAC, patchNode(conditioned(fencedByIPMI))},
		{agent, "deleting a pod", byRBAC, remove},
		{agent, "Secrets", byRBAC, secrets},
		{own(v1alpha1.WebhookName), "Secrets", byRBAC, secrets},
		{own(v1alpha1.WebhookName), "deleting a pod", byRBAC, remove},
	}
}
