// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestAccountsAreThoseThatBindingsName(t *testing.T) {
	binding := func(subjects ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{Subjects: subjects}
	}
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	var got []string
	for _, a := range accountsIn([]rbacv1.ClusterRoleBinding{
		binding(account("kube-system", "node-controller")),
		binding(rbacv1.Subject{Kind: rbacv1.UserKind, Name: "system:kube-scheduler"}, account("default", "other")),
		binding(account("kube-system", "node-controller"), account("kube-system", "pv-protection-controller")),
	}, "kube-system") {
		got = append(got, a.Namespace+"/"+a.Name)
	}
	if want := []string{"kube-system/node-controller", "kube-system/pv-protection-controller"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
