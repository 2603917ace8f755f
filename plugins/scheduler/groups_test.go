// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/plugins/volumehold"
)

func (c *cluster) inGroup(group, name string, created int64) *corev1.Pod {
	c.t.Helper()
	c.add(disk(name)...)
	pod := c.newPod(name, v1alpha1.SchedulerName, name)
	pod.Labels = map[string]string{volumehold.PodGroupLabel: group}
	pod.CreationTimestamp = metav1.Unix(created, 0)
	return c.create(pod)
}

// Two groups never both hold half of the slots and wait.
func TestGroupsTakeTurns(t *testing.T) {
	for _, order := range [][]string{{"a1", "b1", "a2", "b2"}, {"b1", "a1", "b2", "a2"}, {"b1", "b2", "a1", "a2"}, {"a1", "b1", "b2", "a2"}} {
		t.Run(order[0]+order[1]+order[2]+order[3], func(t *testing.T) {
			c := newCluster(t)
			pods := map[string][]*corev1.Pod{}
			for _, name := range order {
				group := name[:1]
				pods[group] = append(pods[group], c.inGroup(group, name, map[string]int64{"a": 1, "b": 2}[group]))
			}
			first := ""
			c.eventually("a group to be bound", func() bool {
				for group, members := range pods {
					if !slices.ContainsFunc(members, func(p *corev1.Pod) bool { return c.get(p).Spec.NodeName == "" }) {
						first = group
					}
				}
				return first != ""
			})
			second := map[string]string{"a": "b", "b": "a"}[first]
			for _, p := range pods[second] {
				if at := c.get(p).Spec.NodeName; at != "" {
					t.Errorf("pod %s of the other group is bound to %s", p.Name, at)
				}
			}
			for _, p := range pods[first] {
				c.delete(p)
			}
			for _, p := range pods[second] {
				c.bound(p)
			}
		})
	}
}

func TestGroupThatDoesNotFitHoldsNothing(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"x", "y"} {
		c.bound(c.pod(name, v1alpha1.SchedulerName, true))
	}
	a1 := c.inGroup("a", "a1", 1)
	a2 := c.inGroup("a", "a2", 1)
	c.eventually("the group to be given up", func() bool {
		return c.scheduledMessage(a1) != "" && c.scheduledMessage(a2) != ""
	})
	single := c.pod("z", v1alpha1.SchedulerName, true)
	c.bound(single)
	for _, p := range []*corev1.Pod{a1, a2} {
		if at := c.get(p).Spec.NodeName; at != "" {
			t.Errorf("pod %s is bound to %s", p.Name, at)
		}
	}
}
