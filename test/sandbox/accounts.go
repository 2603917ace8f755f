// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const bootstrapLabel = "kubernetes.io/bootstrapping=rbac-defaults"

// A kube-controller-manager without its accounts asks three times more for each, at 20 requests a second,
// before it starts any controller.
func (c *Cluster) createAccounts(ctx context.Context) error {
	bindings, err := c.client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{LabelSelector: bootstrapLabel})
	if err != nil {
		return fmt.Errorf("list the API server's own bindings: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s: %w", namespace.Name, err)
	}
	for _, account := range accountsIn(bindings.Items, namespace.Name) {
		_, err := c.client.CoreV1().ServiceAccounts(namespace.Name).Create(ctx, account, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("service account %s: %w", account.Name, err)
		}
	}
	return nil
}

func accountsIn(bindings []rbacv1.ClusterRoleBinding, namespace string) []*corev1.ServiceAccount {
	var accounts []*corev1.ServiceAccount
	seen := map[string]bool{}
	for _, binding := range bindings {
		for _, subject := range binding.Subjects {
			if subject.Kind != rbacv1.ServiceAccountKind || subject.Namespace != namespace || seen[subject.Name] {
				continue
			}
			seen[subject.Name] = true
			accounts = append(accounts, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: subject.Name, Namespace: namespace}})
		}
	}
	return accounts
}
