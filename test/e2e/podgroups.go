// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// The kind of sigs.k8s.io/scheduler-plugins (apis/scheduling/v1alpha1).
const (
	podGroupAPI   = "scheduling.x-k8s.io"
	podGroupLabel = podGroupAPI + "/pod-group"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	podGroupsOf = schema.GroupVersionResource{Group: podGroupAPI, Version: "v1alpha1", Resource: "podgroups"}
)

// podGroups guards all or none: half a group keeps no slots from others.
func podGroups() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "pod-groups",
		Doc: "Two PodGroups of three pods each want the four slots of one node, their pods taking turns: one group runs, of the other no pod is bound and no slot taken, " +
			"so that another pod gets the fourth; when the first group goes, the second runs.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const node, size = "worker-1", 3
			s.definePodGroups()
			defer s.forgetPodGroups()
			groups := []string{"red", "blue"}
			for _, g := range groups {
				s.podGroup(g, size)
			}
			for i := range size {
				for _, g := range groups {
					name := fmt.Sprintf("%s-%d", g, i+1)
					s.claim(name)
					s.groupedPod(node, g, name)
				}
			}
			first := s.groupRuns(groups, size)
			second := map[string]string{"red": "blue", "blue": "red"}[first]
			s.say("group %s runs", first)
			s.claim("single")
			s.podAt(node, "single", "single")
			s.runs("single")
			for _, pod := range s.PodsOf(podGroupLabel, second) {
				s.expect(pod.Spec.NodeName == "", "no pod of the other group has a node", "%s is at %s", pod.Name, pod.Spec.NodeName)
			}
			s.say("single runs in the fourth slot; group %s waits, and has none", second)
			s.remove("single")
			for _, pod := range s.PodsOf(podGroupLabel, first) {
				s.remove(pod.Name)
			}
			s.groupRuns([]string{second}, size)
			s.say("group %s runs", second)
		}),
	}
}

func (s *story) definePodGroups() {
	preserve := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	s.create(definitions, "", map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        podGroupsOf.Resource + "." + podGroupAPI,
			"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"},
		},
		"spec": map[string]any{
			"group": podGroupAPI, "scope": "Namespaced",
			"names":    map[string]any{"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup"},
			"versions": []any{map[string]any{"name": "v1alpha1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": preserve}}},
		},
	})
}

func (s *story) forgetPodGroups() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
	defer cancel()
	if err := s.Dynamic.Resource(definitions).Delete(ctx, podGroupsOf.Resource+"."+podGroupAPI, metav1.DeleteOptions{}); err != nil {
		s.say("the definition of PodGroups could not be removed: %v", err)
	}
}

func (s *story) podGroup(name string, members int64) {
	s.create(podGroupsOf, s.Namespace, map[string]any{
		"apiVersion": podGroupsOf.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"minMember": members},
	})
}

func (s *story) create(kind schema.GroupVersionResource, namespace string, content map[string]any) {
	err := wait.PollUntilContextTimeout(s.ctx, 50*time.Millisecond, sandbox.Patience, true, func(ctx context.Context) (bool, error) {
		_, err := s.Dynamic.Resource(kind).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		s.must(fmt.Errorf("create %s: %w", kind.Resource, err))
	}
}

func (s *story) groupedPod(node, group, name string) {
	pod := sandbox.Pod(name, name)
	pod.Labels[podGroupLabel] = group
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	s.must(s.CreatePod(s.ctx, pod))
}

func (s *story) groupRuns(groups []string, size int) string {
	found := ""
	s.until(fmt.Sprintf("all pods of one of the groups %v run", groups), func() error {
		var errs []error
		for _, g := range groups {
			running := 0
			for _, pod := range s.PodsOf(podGroupLabel, g) {
				if s.Running(pod.Name) == nil {
					running++
				}
			}
			if running == size {
				found = g
				return nil
			}
			errs = append(errs, fmt.Errorf("%d of group %s run", running, g))
		}
		return errors.Join(errs...)
	})
	return found
}
