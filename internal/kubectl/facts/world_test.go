// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The detaching controller's running pod has the flag. Otherwise the output would announce an endless wait.
func TestForceDetachFlag(t *testing.T) {
	const flag = "--disable-force-detach-on-timeout"
	type labels = map[string]string
	own, manager := labels{"app.kubernetes.io/part-of": "moorage"}, labels{"component": kubeControllerManager}
	for _, test := range []struct {
		what, namespace string
		labels          labels
		args            string
		phase           corev1.PodPhase
		cooperative     bool
		want            bool
	}{
		{"Moorage's", "harbour", own, flag, corev1.PodRunning, false, true},
		{"Moorage's, =true", "harbour", own, flag + "=true", corev1.PodRunning, false, true},
		{"Moorage's, =false", "harbour", own, flag + "=false", corev1.PodRunning, false, false},
		{"Moorage's, another flag", "harbour", own, "--v=2", corev1.PodRunning, false, false},
		{"Moorage's, evicted", "harbour", own, flag, corev1.PodFailed, false, false},
		{"Moorage's, where the other detaches", "harbour", own, flag, corev1.PodRunning, true, false},
		{"kube-controller-manager's", "kube-system", manager, flag, corev1.PodRunning, true, true},
		{"kube-controller-manager's, which does not detach", "kube-system", manager, flag, corev1.PodRunning, false, false},
		{"a tenant's with Moorage's label", "a-tenant", own, flag, corev1.PodRunning, false, false},
		{"a tenant's with kube-controller-manager's label", "a-tenant", manager, flag, corev1.PodRunning, true, false},
		{"without a label", "harbour", nil, flag, corev1.PodRunning, false, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "c", UID: "c", Labels: test.labels},
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Args: strings.Fields(test.args)}}},
			Status: corev1.PodStatus{Phase: test.phase}}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		if test.cooperative {
			node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: kubeControllerManager, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:volumesAttached":{}}}`)}}
		}
		w := NewWorld(Objects{Pods: []*corev1.Pod{pod}, Nodes: []*corev1.Node{node}, Home: "harbour"}, time.Unix(0, 0))
		if got := w.Snapshot.NoForceOnTimeout(); got != test.want {
			t.Errorf("%s: %t", test.what, got)
		}
	}
}

// The ClusterRoleBinding names the controller's account.
func TestHome(t *testing.T) {
	binding := func(name, namespace string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "ops"}, {Kind: rbacv1.ServiceAccountKind, Name: "moorage-controller", Namespace: namespace}}}
	}
	for _, test := range []struct {
		bindings []rbacv1.ClusterRoleBinding
		want     string
	}{
		{nil, DefaultHome},
		{[]rbacv1.ClusterRoleBinding{binding("another", "elsewhere")}, DefaultHome},
		{[]rbacv1.ClusterRoleBinding{binding("another", "elsewhere"), binding("moorage-controller", "harbour")}, "harbour"},
	} {
		if got := Home(test.bindings); got != test.want {
			t.Errorf("%v: %s", test.bindings, got)
		}
	}
}
