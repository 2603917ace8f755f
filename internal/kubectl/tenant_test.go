// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

func labelled(namespace, name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-of-it", Labels: map[string]string{v1alpha1.LabelPartOf: v1alpha1.PartOf}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "tenant/image:1", Args: args,
			Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: 8080}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}}},
	}
}

func install(server *apitest.Server, namespace string) {
	server.Put("clusterrolebindings", &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ControllerName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: v1alpha1.ControllerName}},
	})
}

// Only a pod in Moorage's own namespace counts.
func TestTenantsFlag(t *testing.T) {
	for namespace, counts := range map[string]bool{"a-tenant": false, "moorage-system": false, "harbour": true} {
		server, now := load(t, "testdata/force-flag-of-the-dead")
		install(server, "harbour")
		before, _, _ := run(t.Context(), server, now, "explain", "pod", "db", "-n", "shop")
		server.Put("pods", labelled(namespace, "it", "--disable-force-detach-on-timeout"))
		after, _, _ := run(t.Context(), server, now, "explain", "pod", "db", "-n", "shop")
		if (after != before) != counts {
			t.Errorf("a pod in namespace %s: before\n%safter\n%s", namespace, before, after)
		}
	}
}

func TestTenantsLease(t *testing.T) {
	server, now := load(t, "testdata/handover")
	front := discovering(t, server)
	lease := func(namespace string, renewed time.Time) {
		at, seconds, holder := metav1.NewMicroTime(renewed), int32(15), "one"
		server.Put("leases", &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.ControllerName},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: &seconds},
		})
	}
	lease("moorage-system", now.Add(-time.Hour))
	lease("a-tenant", now.Add(time.Hour))
	if out, _, _ := run(t.Context(), front, now, "doctor"); !strings.Contains(out, "nobody leads moorage-controller") {
		t.Errorf("doctor does not say that nobody leads:\n%s", out)
	}
}

func TestTenantsLogs(t *testing.T) {
	server, now := load(t, "testdata/handover")
	server.Put("pods", labelled("a-tenant", "it"))
	server.Put("pods", labelled("moorage-system", "own"))
	asked := unpack(t, bundled(t, server, now))["about.json"] // this server has no logs: each request has failed
	if strings.Contains(asked, "a-tenant") || !strings.Contains(asked, "moorage-system_own") {
		t.Errorf("it asked for\n%s", asked)
	}
}
