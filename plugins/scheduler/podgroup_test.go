// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func (c *cluster) gang(name string, size int) []*corev1.Pod {
	c.t.Helper()
	var claims []string
	for i := range size {
		claim := fmt.Sprintf("%s-%d", name, i)
		c.add(disk(claim)...)
		claims = append(claims, claim)
	}
	return c.gangWith(name, 0, claims...)
}

func (c *cluster) gangWith(name string, priority int32, claims ...string) []*corev1.Pod {
	c.t.Helper()
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: schedulingv1beta1.PodGroupSpec{Priority: &priority,
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(len(claims))}}},
	}
	if _, err := c.kube.SchedulingV1beta1().PodGroups("shop").Create(c.t.Context(), group, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	var pods []*corev1.Pod
	for i, claim := range claims {
		pod := c.newPod(fmt.Sprintf("%s-%d", name, i), v1alpha1.SchedulerName, claim)
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
		pod.Spec.Priority = &priority
		pods = append(pods, c.create(pod))
	}
	return pods
}

// A simulation of kube-scheduler reserves per pod; a gang that doesn't fit must keep no slot.
func TestGangThatDoesNotFitHoldsNothing(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	c := newCluster(t)
	tooMany := c.gang("four", 4)
	c.told(tooMany[3], "no free slot of driver disk.example.com (1 of 1 used)")
	for _, p := range c.filled() {
		c.delete(p)
	}
	for _, p := range tooMany {
		if at := c.get(p).Spec.NodeName; at != "" {
			t.Errorf("pod %s is bound to %s, and the gang has no room for all", p.Name, at)
		}
		c.delete(p)
	}
	used := map[string]bool{}
	for _, p := range c.gang("three", 3) {
		used[c.bound(p)] = true
	}
	if len(used) != 3 {
		t.Errorf("the gang is at nodes %v, want three", used)
	}
}

func TestGangPreempts(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	c := newCluster(t)
	running := c.filled()
	c.add(disk("urgent-0")...)
	c.add(disk("urgent-1")...)
	for _, pod := range c.gangWith("urgent", 1000, "urgent-0", "urgent-1") {
		c.bound(pod)
	}
	if n := len(c.left(running)); n != 1 {
		t.Errorf("%d of 3 pods are left, want 1", n)
	}
}

// The gang waits while slots come free, evicts no more, and no later pod gets the first slot.
func TestGangWaitsForTheDetach(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	c := newCluster(t)
	c.add(node("n4"), csiNode("n4", 1))
	running := append(c.filled(), c.pod("d", v1alpha1.SchedulerName, true))
	attached := map[string]string{}
	for _, pod := range running {
		attachment := attachmentOf(pod.Name, c.bound(pod))
		attached[pod.Name] = attachment.Name
		c.add(attachment)
	}
	c.add(disk("urgent-0")...)
	c.add(disk("urgent-1")...)
	gang := c.gangWith("urgent", 1000, "urgent-0", "urgent-1")
	c.eventually("two pods to be evicted", func() bool { return len(c.left(running)) == 2 })
	for _, pod := range gang {
		c.eventually("the gang to be nominated", func() bool { return c.get(pod).Status.NominatedNodeName != "" })
		c.tryAgain(pod, 3)
	}
	left := c.left(running)
	if len(left) != 2 {
		t.Fatalf("%d of 4 pods are left, want 2: two slots were freed already", len(left))
	}
	evicted := slices.DeleteFunc(slices.Clone(running), func(p *corev1.Pod) bool { return !c.gone(p) })
	c.detach(attached[evicted[0].Name])
	c.tryAgain(gang[0], 2)
	late := c.pod("late", v1alpha1.SchedulerName, true)
	c.told(late, "node(s)")
	c.detach(attached[evicted[1].Name])
	for _, pod := range gang {
		c.bound(pod)
	}
	if n := len(c.left(running)); n != 2 {
		t.Errorf("%d of 4 pods are left, want 2", n)
	}
}

func TestGangPreemptsTheUserOfItsVolume(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	for _, elsewhere := range []bool{false, true} {
		t.Run(fmt.Sprintf("must go elsewhere %t", elsewhere), func(t *testing.T) {
			c := newCluster(t)
			c.oncePod("one")
			user := c.share("user", "one", 0)
			at := c.bound(user)
			if elsewhere {
				unschedulable := node(at)
				unschedulable.Spec.Unschedulable = true
				unschedulable.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
				if _, err := c.kube.CoreV1().Nodes().Update(t.Context(), unschedulable, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			c.bound(c.gangWith("urgent", 1000, "one")[0])
			if !c.gone(user) {
				t.Error("both pods have the volume")
			}
		})
	}
}

func TestGangIsToldThatItsSlotIsLost(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	c := newCluster(t)
	c.full("n3")
	victim, other := c.pod("victim", v1alpha1.SchedulerName, true), c.pod("other", v1alpha1.SchedulerName, true)
	for _, pod := range []*corev1.Pod{victim, other} {
		c.add(attachmentOf(pod.Name, c.bound(pod)))
	}
	c.full(c.bound(other)) // which goes on
	at := c.bound(victim)
	c.add(disk("urgent-0")...)
	gang := c.gangWith("urgent", 1000, "urgent-0")
	told := func() string {
		group, err := c.kube.SchedulingV1beta1().PodGroups("shop").Get(t.Context(), "urgent", metav1.GetOptions{})
		if err != nil || len(group.Status.Conditions) == 0 {
			return ""
		}
		return group.Status.Conditions[0].Message
	}
	c.eventually("the gang to wait for the slot", func() bool {
		c.tryAgain(gang[0], 1)
		return c.gone(victim) && strings.Contains(told(), "nothing more is evicted")
	})
	c.full(at)
	c.eventually("the gang to be told otherwise", func() bool { return !strings.Contains(told(), "nothing more is evicted") })
}
