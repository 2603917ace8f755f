// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func denied(what string, err error, says string) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		return fmt.Errorf("%s: the answer is %v, want a refusal that says %q", what, err, says)
	}
	return nil
}

func (s *story) policies(ctx context.Context) error {
	w, err := s.makeWorkload(ctx, "policies", map[string]string{sandbox.EnforceLabel: "true", "moorage.dev/strict": "true"})
	if err != nil {
		return err
	}
	pods, nodes := s.client.CoreV1().Pods(w.namespace), s.client.CoreV1().Nodes()
	attached := []byte(`{"status":{"volumesAttached":[{"name":"x","devicePath":""}]}}`)
	_, writesAttached := nodes.Patch(ctx, w.pod.Spec.NodeName, types.MergePatchType, attached, metav1.PatchOptions{}, "status")
	astray := sandbox.Pod("astray", "data")
	astray.Spec.SchedulerName = "another"
	_, goesAstray := pods.Create(ctx, astray, metav1.CreateOptions{})
	past := sandbox.Pod("past", "data")
	past.Spec.NodeName = w.pod.Spec.NodeName
	_, goesPast := pods.Create(ctx, past, metav1.CreateOptions{})
	for _, err := range []error{
		denied("volumesAttached is written", writesAttached, "only system:serviceaccount:moorage-system:moorage-controller writes volumesAttached"),
		denied("a pod goes past Moorage's scheduler", goesAstray, "set spec.schedulerName to it"),
		denied("a pod goes past every scheduler", goesPast, "leave spec.nodeName"),
	} {
		if err != nil {
			return err
		}
	}
	return s.remove(ctx, w)
}

func (s *story) as(user string) (dynamic.Interface, error) {
	config := s.cluster.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return dynamic.NewForConfig(config)
}

func (s *story) bind(ctx context.Context, user, role, namespace string) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var err error
	if namespace == "" {
		_, err = s.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role}, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
	} else {
		_, err = s.client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role}, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
	}
	return err
}

// An editor makes and withdraws tickets, but none for an unclaimed volume. A viewer of the cluster sees
// everything.
func (s *story) peoplesRights(ctx context.Context) error {
	w, err := s.makeWorkload(ctx, "people", map[string]string{sandbox.EnforceLabel: "true"})
	if err != nil {
		return err
	}
	for _, b := range [][3]string{{"editor", "edit", w.namespace}, {"editor", "moorage-tickets", w.namespace}, {"viewer", "view", ""}} {
		if err := s.bind(ctx, b[0], b[1], b[2]); err != nil {
			return err
		}
	}
	for _, act := range []func(context.Context, *workload) error{s.editorActs, s.viewerActs} {
		if err := act(ctx, w); err != nil {
			return err
		}
	}
	return s.remove(ctx, w)
}

func (s *story) editorActs(ctx context.Context, w *workload) error {
	editor, err := s.as("editor")
	if err != nil {
		return err
	}
	tickets := editor.Resource(sandbox.TicketResource()).Namespace(w.namespace)
	ticket := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.KindVolumeTicket,
		"metadata": map[string]any{"name": "mine"},
		"spec": map[string]any{"type": string(v1alpha1.TicketManual), "nodeName": w.pod.Spec.NodeName, "ttlSeconds": int64(600),
			"volumes": []any{map[string]any{"claim": map[string]any{"name": "data"}}}},
	}}
	err = until(ctx, "an editor's rights are aggregated", func(ctx context.Context) error {
		_, err := tickets.List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return err
	}
	err = until(ctx, "an editor with moorage-tickets makes a ticket", func(ctx context.Context) error {
		_, err := tickets.Create(ctx, ticket, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if err := tickets.Delete(ctx, "mine", metav1.DeleteOptions{}); err != nil {
		return err
	}
	ticket.Object["spec"].(map[string]any)["volumes"] = []any{map[string]any{"persistentVolume": "pv-9"}}
	_, err = tickets.Create(ctx, ticket, metav1.CreateOptions{})
	return denied("a tenant asks for an unclaimed volume", err, "is an administrator's")
}

func (s *story) viewerActs(ctx context.Context, _ *workload) error {
	viewer, err := s.as("viewer")
	if err != nil {
		return err
	}
	for _, resource := range []string{"volumetickets", "volumeholds", "attachpolicies", "nodemountreports"} {
		err := until(ctx, "a viewer lists "+resource, func(ctx context.Context) error {
			_, err := viewer.Resource(v1alpha1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
