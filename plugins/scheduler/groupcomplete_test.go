// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Of a group of two one pod exists: it reserves nothing, says what it waits for in a
// way for which no autoscaler adds nodes, and is placed when the other one comes.
func TestIncompleteGroupReservesNothing(t *testing.T) {
	c := newCluster(t)
	x := c.pod("x", v1alpha1.SchedulerName, true)
	c.bound(x)
	c.bound(c.pod("y", v1alpha1.SchedulerName, true))
	a1 := c.inGroup("a", "a1", 1)
	c.waits(a1, "PodGroup shop/a has 1 of the 2 pods that it needs")
	z := c.pod("z", v1alpha1.SchedulerName, true)
	c.bound(z)
	if _, exists := c.moorage.ticket(a1); exists {
		t.Error("pod a1 has a ticket, and its group is incomplete")
	}
	a2 := c.inGroup("a", "a2", 2)
	c.delete(x)
	c.delete(z)
	c.bound(a1)
	c.bound(a2)
}

// A group's PodGroup comes after its pods, which wait for it.
func TestGroupComesAfterItsPods(t *testing.T) {
	c := newCluster(t)
	l1, l2 := c.inGroup("late", "l1", 1), c.inGroup("late", "l2", 1)
	c.waits(l1, "PodGroup shop/late does not exist. No new node would help.")
	c.waits(l2, "PodGroup shop/late does not exist. No new node would help.")
	c.podGroup("late", 2)
	c.bound(l1)
	c.bound(l2)
}

// The controller refuses one pod of a gang of Kubernetes' own kind: none of it is
// bound, until all are granted.
func TestRefusedTicketLeavesNoPartOfAGang(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	c := newCluster(t)
	refused := make(chan struct{}, 100)
	c.moorage.decide(func(ticket *v1alpha1.VolumeTicket) (metav1.ConditionStatus, string) {
		if ticket.Name != "uid-three-1" {
			return metav1.ConditionTrue, ""
		}
		select {
		case refused <- struct{}{}:
		default:
		}
		return metav1.ConditionFalse, "somebody was faster"
	})
	pods := c.gang("three", 3)
	for range 3 { // it is tried again, and refused again
		<-refused
	}
	c.bound(c.pod("plain", v1alpha1.SchedulerName, false))
	for _, pod := range pods {
		if at := c.get(pod).Spec.NodeName; at != "" {
			t.Errorf("pod %s is bound to %s, and the gang has no room for all", pod.Name, at)
		}
	}
	c.moorage.decide(func(*v1alpha1.VolumeTicket) (metav1.ConditionStatus, string) { return metav1.ConditionTrue, "" })
	used := map[string]*corev1.Pod{}
	for _, pod := range pods {
		used[c.bound(pod)] = pod
	}
	if len(used) != 3 {
		t.Errorf("the gang is at %d nodes of one slot, want 3", len(used))
	}
}
