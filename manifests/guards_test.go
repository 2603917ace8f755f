// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/manifests"
)

// What the controller alone writes down, nobody forges, an administrator no more
// than a tenant.
func TestOnlyTheControllerWritesItsRecords(t *testing.T) {
	policy := loadPolicy(t, "moorage-records")
	granted := ticketOf(ledger.TypeManual, "")
	granted.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue}}
	epoch := ticketOf(ledger.TypeManual, "")
	epoch.Status.Epoch = 1 << 40
	labelled := ticketOf(ledger.TypeManual, "")
	labelled.Labels = map[string]string{"a": "b"}
	hold := func(node string) *v1alpha1.VolumeHold {
		out := &v1alpha1.VolumeHold{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeHold},
			ObjectMeta: metav1.ObjectMeta{Name: "vh-1"}, Spec: v1alpha1.VolumeHoldSpec{Driver: "d", Handle: "h"}}
		if node != "" {
			out.Status.Holder = &v1alpha1.Holder{Node: node}
		}
		return out
	}
	ticketStatus := request{namespace: "shop", resource: tickets, subresource: "status", kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket)}
	holds := request{resource: v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVolumeHolds), kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeHold)}
	for name, test := range map[string]struct {
		request     request
		now, before runtime.Object
		want        string
	}{
		"a forged grant":           {ticketStatus, granted, ticketOf(ledger.TypeManual, ""), "create a VolumeTicket"},
		"a grant taken away":       {ticketStatus, ticketOf(ledger.TypeManual, ""), granted, "only Moorage's controller"},
		"a forged epoch":           {ticketStatus, epoch, ticketOf(ledger.TypeManual, ""), "only Moorage's controller"},
		"a write without a change": {ticketStatus, granted, granted, ""},
		"a label":                  {ticketStatus, labelled, ticketOf(ledger.TypeManual, ""), ""},
		"a hold made":              {holds, hold("worker-1"), nil, "VolumeHold"},
		"a hold moved":             {holds, hold("worker-2"), hold("worker-1"), "VolumeHold"},
		"a hold freed":             {holds, hold(""), hold("worker-1"), "VolumeHold"},
		"a hold migrated":          {holds, hold("worker-1"), hold("worker-1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.request
			r.now, r.before = test.now, test.before
			for _, user := range []string{"root", "walt", tenant, kubelet, schedulerUser, extenderUser} {
				r.user = user
				check(t, policy.judge(t, r), test.want)
			}
			r.user = controllerUser
			check(t, policy.judge(t, r), "")
		})
	}
}

func TestMarksOfPodsAreMoorages(t *testing.T) {
	policy := loadPolicy(t, "moorage-pod-marks")
	marked := func(value string) *corev1.Pod {
		out := podWith("", claim("data"))
		if value != "" {
			out.Annotations[v1alpha1.AnnotationBindFence] = value
		}
		return out
	}
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus) *corev1.Pod {
		out := podWith("", claim("data"))
		out.Status.Conditions = []corev1.PodCondition{{Type: kind, Status: status}}
		return out
	}
	for name, test := range map[string]struct {
		subresource string
		now, before runtime.Object
		touches     bool
	}{
		"none":                      {"", marked(""), nil, false},
		"set":                       {"status", marked("1"), marked(""), true},
		"changed":                   {"", marked("2"), marked("1"), true},
		"taken away":                {"", marked(""), marked("1"), true},
		"left alone":                {"", marked("1"), marked("1"), false},
		"a condition set":           {"status", condition(v1alpha1.PodPlaceable, "True"), condition(corev1.PodReady, "True"), true},
		"a condition changed":       {"status", condition(v1alpha1.PodPlaceable, "False"), condition(v1alpha1.PodPlaceable, "True"), true},
		"another condition changed": {"status", condition(corev1.PodReady, "False"), condition(corev1.PodReady, "True"), false},
		"with a binding":            {"binding", &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationBindFence: "1"}}}, nil, true},
		"a binding without":         {"binding", &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := request{namespace: "shop", resource: pods, subresource: test.subresource, kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: test.now, before: test.before}
			for _, user := range []string{tenant, "walt", "mallory", kubelet, "ina"} {
				r.user = user
				want := ""
				if test.touches {
					want = "leave them as they are"
				}
				check(t, policy.judge(t, r), want)
			}
			for _, user := range []string{controllerUser, schedulerUser, extenderUser} {
				r.user = user
				check(t, policy.judge(t, r), "")
			}
		})
	}
	for _, user := range []string{tenant, schedulerUser, "root"} {
		check(t, policy.judge(t, request{user: user, namespace: "shop", resource: pods, kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: marked("1")}), "leave them out of the pod")
	}
}

// A token of Moorage's can be used for what Moorage does only.
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
		"nothing":            {nil, ""},
		"volumesAttached":    {func(n *corev1.Node) { n.Status.VolumesAttached = nil }, ""},
		"its own annotation": {func(n *corev1.Node) { n.Annotations["moorage.dev/x"] = "y" }, ""},
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
		"a label":       {func(n *corev1.Node) { n.Labels["zone"] = "b" }, "its own annotations"},
		"no labels":     {func(n *corev1.Node) { n.Labels = nil }, "its own annotations"},
		"an annotation": {func(n *corev1.Node) { n.Annotations["team"] = "b" }, "its own annotations"},
		"a finalizer":   {func(n *corev1.Node) { n.Finalizers = []string{"x/y"} }, "its own annotations"},
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
		{extenderUser, terminating, "nobody else"}, {schedulerUser, running, ""}, {tenant, running, ""},
	} {
		check(t, policy.judge(t, request{user: test.user, namespace: "shop", resource: pods, kind: corev1.SchemeGroupVersion.WithKind("Pod"), before: test.pod}), test.want)
	}
	phase := running.DeepCopy()
	phase.Status.Phase = corev1.PodFailed
	for user, want := range map[string]string{controllerUser: "nothing else", extenderUser: "nothing else", schedulerUser: "", kubelet: ""} {
		check(t, policy.judge(t, request{user: user, namespace: "shop", resource: pods, subresource: "status", kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: phase, before: running}), want)
	}
	check(t, policy.judge(t, request{user: controllerUser, namespace: "shop", resource: pods, subresource: "status",
		kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: safe(running.DeepCopy(), "True"), before: running}), "")
}

func TestAccountsHaveTheirOwnLeases(t *testing.T) {
	policy := loadPolicy(t, "moorage-leases")
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	for _, test := range []struct{ user, namespace, name, want string }{
		{controllerUser, manifests.Namespace, "moorage-controller", ""},
		{schedulerUser, manifests.Namespace, "moorage-scheduler", ""},
		{extenderUser, manifests.Namespace, "moorage-extender", ""},
		{schedulerUser, manifests.Namespace, "moorage-controller", "its own Lease"},
		{controllerUser, manifests.Namespace, "another", "its own Lease"},
		{schedulerUser, "kube-system", "kube-scheduler", "its own Lease"},
		{schedulerUser, "kube-system", "moorage-scheduler", "its own Lease"},
		{"system:kube-scheduler", "kube-system", "kube-scheduler", ""},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: test.name}}
		r := request{user: test.user, namespace: test.namespace, resource: leases, kind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), now: lease}
		check(t, policy.judge(t, r), test.want)
		r.before = lease
		check(t, policy.judge(t, r), test.want)
	}
}
