// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestOnlyMoorageWritesTheStatusOfTickets(t *testing.T) {
	policy := loadPolicy(t, "moorage-tickets")
	granted := ticketOf(ledger.TypeManual)
	granted.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue}}
	epoch := ticketOf(ledger.TypeManual)
	epoch.Status.Epoch = 1 << 40
	volumes := ticketOf(ledger.TypeManual)
	volumes.Status.Volumes = []v1alpha1.TicketVolumeStatus{{Claim: "data", Driver: "d", VolumeHandle: "another's"}}
	labelled := ticketOf(ledger.TypeManual)
	labelled.Labels = map[string]string{"a": "b"}
	for name, test := range map[string]struct {
		now, before *v1alpha1.VolumeTicket
		want        string
	}{
		"a forged grant":           {granted, ticketOf(ledger.TypeManual), "create a VolumeTicket"},
		"a grant taken away":       {ticketOf(ledger.TypeManual), granted, "only Moorage's scheduler and controller"},
		"a forged epoch":           {epoch, ticketOf(ledger.TypeManual), "only Moorage's scheduler and controller"},
		"another's volume":         {volumes, ticketOf(ledger.TypeManual), "only Moorage's scheduler and controller"},
		"a write without a change": {granted, granted, ""},
		"a label":                  {labelled, ticketOf(ledger.TypeManual), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := request{namespace: "shop", resource: tickets, subresource: "status", kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), now: test.now, before: test.before}
			for _, user := range []string{"root", "walt", tenant, kubelet} {
				r.user = user
				check(t, policy.judge(t, r), test.want)
			}
			for _, user := range []string{schedulerUser, controllerUser} {
				r.user = user
				check(t, policy.judge(t, r), "")
			}
		})
	}
}

// A restored pod carries the marks of its original.
func TestNoPolicyRefusesAPodForItsMarks(t *testing.T) {
	restored := podWith(`{"uid":"before","volumes":[{"name":"data","claim":"claim-data","node":"worker-9","safeToMount":true,"safeToDetach":false}]}`, claim("data"))
	restored.Annotations["moorage.dev/of-another-release"] = "x"
	restored.Spec.SchedulerName = v1alpha1.SchedulerName
	bare := podWith("", claim("data"))
	bare.Spec.SchedulerName = v1alpha1.SchedulerName
	binding := &corev1.Binding{ObjectMeta: restored.ObjectMeta, Target: corev1.ObjectReference{Kind: "Node", Name: "worker-1"}}
	pod, bind := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Binding")
	for _, is := range everyPolicy(t) {
		policy := loadPolicyFrom(t, is.file, is.name)
		for _, r := range []request{
			{resource: pods, kind: pod, now: restored}, {resource: pods, kind: pod, now: restored, before: bare}, {resource: pods, kind: pod, now: bare, before: restored},
			{resource: pods, subresource: "status", kind: pod, now: restored, before: bare},
			{resource: pods, subresource: "binding", kind: bind, now: binding}, {resource: bindings, kind: bind, now: binding},
		} {
			r.namespace = "shop"
			for _, r.user = range []string{tenant, "root", kubelet, schedulerUser, "system:serviceaccount:velero:velero"} {
				if policy.asked(r) {
					check(t, policy.judge(t, r), "")
				}
			}
		}
	}
}

func TestOwnAccountsArePinned(t *testing.T) {
	policy := loadPolicy(t, "moorage-own-accounts")
	at := func(change func(*corev1.Node)) *corev1.Node {
		out := node("v1")
		out.Labels, out.Annotations = map[string]string{"zone": "a"}, map[string]string{"team": "a"}
		out.Status.VolumesInUse, out.Status.Capacity = []corev1.UniqueVolumeName{"v1"}, corev1.ResourceList{}
		out.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "True"}}
		if change != nil {
			change(out)
		}
		return out
	}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"nothing":         {nil, ""},
		"volumesAttached": {func(n *corev1.Node) { n.Status.VolumesAttached = nil }, ""},
		"its own condition": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "moorage.dev/X"})
		}, ""},
		"what a storage has cut off": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, cutOff("rbd", 7))
		}, ""},
		"what somebody else has fenced": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, fencedSince("ipmi", "True", 7))
		}, "nothing else"},
		"volumesInUse":  {func(n *corev1.Node) { n.Status.VolumesInUse = nil }, "nothing else"},
		"addresses":     {func(n *corev1.Node) { n.Status.Addresses = []corev1.NodeAddress{{Address: "1.2.3.4"}} }, "nothing else"},
		"nodeInfo":      {func(n *corev1.Node) { n.Status.NodeInfo.BootID = "x" }, "nothing else"},
		"Ready":         {func(n *corev1.Node) { n.Status.Conditions[0].Status = "False" }, "nothing else"},
		"a label":       {func(n *corev1.Node) { n.Labels["zone"] = "b" }, "annotations of pods"},
		"no labels":     {func(n *corev1.Node) { n.Labels = nil }, "annotations of pods"},
		"an annotation": {func(n *corev1.Node) { n.Annotations["team"] = "b" }, "annotations of pods"},
		"a finalizer":   {func(n *corev1.Node) { n.Finalizers = []string{"x/y"} }, "annotations of pods"},
	} {
		r := request{user: controllerUser, resource: nodes, subresource: "status", kind: corev1.SchemeGroupVersion.WithKind("Node"), now: at(test.change), before: at(nil)}
		t.Run("a node's "+name, func(t *testing.T) { check(t, policy.judge(t, r), test.want) })
		r.user = kubelet
		check(t, policy.judge(t, r), "")
	}
	running := podWith("", claim("data"))
	running.Spec.NodeName = "worker-1"
	terminating := running.DeepCopy()
	terminating.DeletionTimestamp = &metav1.Time{}
	placed := terminating.DeepCopy()
	placed.Spec.NodeName = ""
	for _, test := range []struct {
		user string
		pod  *corev1.Pod
		want string
	}{
		{controllerUser, terminating, ""}, {controllerUser, running, "out of service"}, {controllerUser, placed, "out of service"},
		{schedulerUser, running, ""}, {tenant, running, ""},
	} {
		check(t, policy.judge(t, request{user: test.user, namespace: "shop", resource: pods, kind: corev1.SchemeGroupVersion.WithKind("Pod"), before: test.pod}), test.want)
	}
	phase := running.DeepCopy()
	phase.Status.Phase = corev1.PodFailed
	for user, want := range map[string]string{controllerUser: "nothing else", schedulerUser: "", kubelet: ""} {
		check(t, policy.judge(t, request{user: user, namespace: "shop", resource: pods, subresource: "status", kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: phase, before: running}), want)
	}
	check(t, policy.judge(t, request{user: controllerUser, namespace: "shop", resource: pods, subresource: "status",
		kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: safe(running.DeepCopy(), "True"), before: running}), "")
}
