// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// Scene is a cluster with Moorage in Standalone mode.
type Scene struct {
	Config    *rest.Config // an administrator's, able to impersonate
	Namespace string       // Moorage's
	Own       string       // the attackers': opted in, with a running pod "db" of the claim "data"
	Victim    string       // another tenant's namespace, with the same
	Strict    string       // a namespace of the attackers' that is strict
	Plain     string       // not opted in
	Addresses []string     // host:port of all ports of Moorage's processes
	Extenders []string     // the ports where the extender answers kube-schedulers
	Metrics   []string     // the ports with metrics, for clients that the API server permits
	// SigningKey signs tokens at the API server: attackers have expired tokens, and no server issues these.
	SigningKey string
	// Works returns nil while the victim's pods are still stamped and started.
	Works func(context.Context) error

	admin          clients
	pod, victimPod *corev1.Pod
	victimVolume   string      // name of the victim's PersistentVolume
	waits          *corev1.Pod // the attackers', with their claim: it waits for a scheduler that does not exist
	elsewhere      string      // a node where neither pod is
	keys           *pki
}

type actor struct {
	name, user string
	groups     []string
	role       rbacv1.RoleRef
}

const apiGroup = rbacv1.GroupName

func editor() actor {
	return actor{name: "tenant (edit)", user: "attack-editor", role: rbacv1.RoleRef{APIGroup: apiGroup, Kind: "ClusterRole", Name: "edit"}}
}

func namespaceAdmin() actor {
	return actor{name: "namespace admin", user: "attack-admin", role: rbacv1.RoleRef{APIGroup: apiGroup, Kind: "ClusterRole", Name: "admin"}}
}

func ticketer() actor {
	return actor{name: "tenant (moorage-tickets)", user: "attack-ticketer", role: rbacv1.RoleRef{APIGroup: apiGroup, Kind: "ClusterRole", Name: "moorage-tickets"}}
}

func wildcard() actor {
	return actor{name: "namespace cluster-admin (*)", user: "attack-wildcard", role: rbacv1.RoleRef{APIGroup: apiGroup, Kind: "Role", Name: "attack-wildcard"}}
}

func own(account string) actor {
	return actor{name: "stolen token of " + account, user: "system:serviceaccount:" + sandbox.MoorageNamespace + ":" + account,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + sandbox.MoorageNamespace, "system:authenticated"}}
}

func node() actor { return actor{name: "node"} }

type clients struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
}

func newClients(config *rest.Config) (clients, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, err
	}
	anything, err := dynamic.NewForConfig(config)
	return clients{kube, anything}, err
}

func (s *Scene) as(a actor) (clients, error) {
	if a.name == node().name {
		a.user, a.groups = "system:node:"+s.pod.Spec.NodeName, []string{"system:nodes", "system:authenticated"}
	}
	config := rest.CopyConfig(s.Config)
	config.QPS, config.Burst = 200, 400
	config.Impersonate = rest.ImpersonationConfig{UserName: a.user, Groups: a.groups}
	if a.user == own(v1alpha1.NodeName).user { // a pod's token names its node
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {s.pod.Spec.NodeName}}
	}
	return newClients(config)
}

func (s *Scene) set(ctx context.Context) error {
	var err error
	if s.admin, err = newClients(s.Config); err != nil {
		return err
	}
	for _, namespace := range []string{s.Own, s.Strict, s.Plain} {
		all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
		_, err := s.admin.kube.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: wildcard().role.Name}, Rules: all}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		for _, a := range []actor{editor(), namespaceAdmin(), ticketer(), wildcard()} {
			_, err := s.admin.kube.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: a.user}, RoleRef: a.role,
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: apiGroup, Name: a.user}}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
		}
	}
	if s.pod, err = s.admin.kube.CoreV1().Pods(s.Own).Get(ctx, "db", metav1.GetOptions{}); err != nil {
		return err
	}
	if s.victimPod, err = s.admin.kube.CoreV1().Pods(s.Victim).Get(ctx, "db", metav1.GetOptions{}); err != nil {
		return err
	}
	claim, err := s.admin.kube.CoreV1().PersistentVolumeClaims(s.Victim).Get(ctx, "data", metav1.GetOptions{})
	if err != nil {
		return err
	}
	s.victimVolume = claim.Spec.VolumeName
	if s.waits, err = s.awaiting(ctx, "waits", func(spec *corev1.PodSpec) { spec.SchedulerName = "attack-nobody" }); err != nil {
		return err
	}
	if s.elsewhere, err = s.unused(ctx); err != nil {
		return err
	}
	if s.keys, err = s.steal(ctx); err != nil {
		return fmt.Errorf("what attackers have stolen: %w", err)
	}
	return s.awaitRights(ctx)
}

func (s *Scene) unused(ctx context.Context) (string, error) {
	list, err := s.admin.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, n := range list.Items {
		if n.Name != s.pod.Spec.NodeName && n.Name != s.victimPod.Spec.NodeName {
			return n.Name, nil
		}
	}
	return "", fmt.Errorf("none of %d nodes is without a pod of the attackers or of the victim", len(list.Items))
}

// A dry run shows that the API server knows the bindings.
func (s *Scene) awaitRights(ctx context.Context) error {
	for _, a := range []actor{ticketer(), wildcard()} {
		c, err := s.as(a)
		if err != nil {
			return err
		}
		err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, sandbox.Patience, true, func(ctx context.Context) (bool, error) {
			_, err := c.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own).Create(ctx, s.ticket("rights", v1alpha1.TicketManual, "data"),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && !apierrors.IsForbidden(err) {
				return false, err
			}
			return err == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s makes tickets: %w", a.name, err)
		}
	}
	return nil
}
