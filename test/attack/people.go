// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	byRBAC    = "RBAC"
	byTickets = "policy moorage-tickets"
	byStrict  = "policy moorage-strict"
	byOwn     = "policy moorage-own-accounts"
	byAttach  = "policy moorage-volumes-attached"
	byFenced  = "policy moorage-fenced-conditions"
	byWord    = "policy moorage-node-mount-reports"
	byWebhook = "the webhook, which stamps its own"
	byServer  = "the API server's validation"
	byNothing = "nothing"
	byWorks   = "nothing, and the victim's pods start"
)

func tenants() []attempt {
	forged := func(_ *Scene, pod *corev1.Pod) {
		pod.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: `{"volumes":[{"name":"v0","claim":"data","safeToMount":true,"safeToDetach":true}]}`}
	}
	placed := func(s *Scene, pod *corev1.Pod) { pod.Spec.NodeName = s.pod.Spec.NodeName }
	mirror := func(s *Scene, pod *corev1.Pod) {
		placed(s, pod)
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	another := func(_ *Scene, pod *corev1.Pod) { pod.Spec.SchedulerName = "another" }
	return []attempt{
		{editor(), "a ticket without the right to its type", byRBAC, ticketOf(v1alpha1.TicketManual, nil)},
		{editor(), "a forged VolumeHold", byRBAC, hold},
		{editor(), "an AttachPolicy for somebody's driver", byRBAC, policyOfOthers},
		{editor(), "a new pod with a volume status", byWebhook, makePod(inOwn, forged)},
		{editor(), "a pod with another's marks, as backup tools restore it, in a namespace without Moorage", byNothing, makePod(inPlain, forged)},
		{editor(), "another volume status of a pod", byWorks, works(patchPod(`{"metadata":{"annotations":{"` + v1alpha1.AnnotationVolumeStatus + `":"x"}}}`))},
		{editor(), "a forged condition SafeToMount", byRBAC, patchPod(conditioned(v1alpha1.PodSafeToMount), "status")},
		{editor(), "pods/binding by hand", byRBAC, bindByHand},
		{editor(), "spec.nodeName in a strict namespace", byStrict, makePod(inStrict, placed)},
		{editor(), "a mirror pod in a strict namespace", byStrict, makePod(inStrict, mirror)},
		{editor(), "another scheduler in a strict namespace", byStrict, makePod(inStrict, another)},
		{editor(), "deleting a VolumeAttachment", byRBAC, func(ctx context.Context, s *Scene, c clients) error {
			return c.kube.StorageV1().VolumeAttachments().Delete(ctx, "any", metav1.DeleteOptions{})
		}},
		{namespaceAdmin(), "a Role with the right to a type", "RBAC: no right that one has not", func(ctx context.Context, s *Scene, c clients) error {
			_, err := c.kube.RbacV1().Roles(s.Own).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "more"},
				Rules: []rbacv1.PolicyRule{{APIGroups: []string{"moorage.dev"}, Resources: []string{"tickettypes"}, Verbs: []string{"use"}}}}, metav1.CreateOptions{})
			return err
		}},
	}
}

func wildcards() []attempt {
	unclaimed := func(s *Scene, o *unstructured.Unstructured) {
		setIn(o, "volumes", []any{map[string]any{"persistentVolume": s.victimVolume}})
	}
	all := []attempt{
		{wildcard(), "a ticket of a pod, as earlier releases made", byServer, ticketOf("Pod", nil)},
		{wildcard(), "a ticket for another's PersistentVolume", byTickets, ticketOf(v1alpha1.TicketManual, unclaimed)},
		{wildcard(), "a ticket that ends in a year", byServer, ticketOf(v1alpha1.TicketManual, func(_ *Scene, o *unstructured.Unstructured) { setIn(o, "ttlSeconds", int64(31536000)) })},
		{wildcard(), "a ticket of a type of one's own", byServer, ticketOf("Urgent", nil)},
		{wildcard(), "a ticket that says that Moorage has made it, with a finalizer", byWorks, keptTicket},
		{wildcard(), "a forged VolumeHold", byRBAC, hold},
		{wildcard(), "an AttachPolicy for somebody's driver", byRBAC, policyOfOthers},
		{wildcard(), "a forged condition SafeToMount", byWorks, works(patchPod(conditioned(v1alpha1.PodSafeToMount), "status"))},
		{wildcard(), "deleting all tickets of one's namespace", byWorks, works(endTickets)},
		{wildcard(), "deleting another namespace's ticket", byRBAC, func(ctx context.Context, s *Scene, c clients) error {
			return c.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Victim).Delete(ctx, "any", metav1.DeleteOptions{})
		}},
	}
	for _, kind := range []v1alpha1.TicketType{v1alpha1.TicketRestore, v1alpha1.TicketExpansion, v1alpha1.TicketSalvage, v1alpha1.TicketShareManager,
		v1alpha1.TicketUpgrade, v1alpha1.TicketClone, v1alpha1.TicketRebuild, v1alpha1.TicketEviction, v1alpha1.TicketLiveMigration} {
		all = append(all, attempt{wildcard(), "a ticket of type " + string(kind), byTickets, ticketOf(kind, nil)})
	}
	return append(all, attempt{ticketer(), "a ticket of type Restore", byTickets, ticketOf(v1alpha1.TicketRestore, nil)})
}
