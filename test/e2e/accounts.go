// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func (s *story) account(name string, own []rbacv1.PolicyRule, clusterRoles ...string) {
	_, err := s.Client.CoreV1().ServiceAccounts(s.Namespace).Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	s.must(err)
	access := s.Client.RbacV1()
	_, err = access.Roles(s.Namespace).Create(s.ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: own}, metav1.CreateOptions{})
	s.must(err)
	refs := []rbacv1.RoleRef{{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}
	for _, role := range clusterRoles {
		refs = append(refs, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role})
	}
	for _, ref := range refs {
		_, err = access.RoleBindings(s.Namespace).Create(s.ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, RoleRef: ref, Subjects: s.subject(name),
		}, metav1.CreateOptions{})
		s.must(err)
	}
}

func (s *story) everywhere(account, clusterRole string) (end func()) {
	bindings, name := s.Client.RbacV1().ClusterRoleBindings(), s.Namespace+"-"+account+"-"+clusterRole
	_, err := bindings.Create(s.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: s.subject(account),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
	}, metav1.CreateOptions{})
	s.must(err)
	return func() { s.must(bindings.Delete(s.ctx, name, metav1.DeleteOptions{})) }
}

func (s *story) subject(account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: account}}
}

// A pod's token is bound to the pod, as a kubelet asks for it.
func (s *story) as(account string, pod *authenticationv1.BoundObjectReference) *rest.Config {
	token, err := s.Client.CoreV1().ServiceAccounts(s.Namespace).CreateToken(s.ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: pod},
	}, metav1.CreateOptions{})
	s.must(err)
	config := rest.AnonymousClientConfig(s.Cluster.RESTConfig())
	config.BearerToken = token.Status.Token
	return config
}
