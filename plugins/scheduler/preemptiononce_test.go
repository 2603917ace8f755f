// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// A pod has preempted another one, and its slot is still being detached. Another
// plugin had refused it a node, so that it is tried again for changes there. Nothing
// more is evicted for it, it says why, and it gets the slot that it freed.
func TestNothingMoreIsEvictedWhileASlotIsDetached(t *testing.T) {
	c := newCluster(t)
	pods := c.filled()
	for _, pod := range pods {
		c.add(attachmentOf(pod.Name, c.get(pod).Spec.NodeName))
	}
	// n4 has no driver, and room for one pod more.
	small := node("n4")
	small.Labels = map[string]string{"kind": "small"}
	small.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
	c.add(small)
	occupant := c.newPod("occupant", v1alpha1.SchedulerName, "")
	most := int32(2000)
	occupant.Spec.Priority, occupant.Spec.NodeSelector = &most, small.Labels
	occupant = c.create(occupant)
	c.bound(occupant)
	c.attempts() // counts from here on
	urgent := c.urgent("urgent")
	c.eventually("a pod to be preempted", func() bool { return len(c.left(pods)) == 2 })
	c.eventually("the pod to be nominated", func() bool { return c.get(urgent).Status.NominatedNodeName != "" })
	c.delete(occupant)
	for range 3 { // as the queue's own flush does
		tried := c.attempts()
		c.eventually("the pod to be tried again", func() bool {
			c.scheduler.SchedulingQueue.Activate(klog.Background(), map[string]*corev1.Pod{urgent.Name: c.get(urgent)})
			return c.attempts() > tried
		})
	}
	c.told(urgent, "nothing more is evicted")
	left := c.left(pods)
	if len(left) != 2 {
		t.Fatalf("%d of 3 pods are left, want 2: one slot was freed already", len(left))
	}
	freed := c.get(urgent).Status.NominatedNodeName
	for _, pod := range pods {
		name := attachmentOf(pod.Name, freed).Name
		if c.gone(pod) {
			c.detach(name)
		}
	}
	if at := c.bound(urgent); at != freed {
		t.Errorf("bound to %s, and the slot was freed at %s", at, freed)
	}
	if n := len(c.left(pods)); n != 2 {
		t.Errorf("%d of 3 pods are left, want 2", n)
	}
}

// gone says whether a pod is no more.
func (c *cluster) gone(pod *corev1.Pod) bool { return len(c.left([]*corev1.Pod{pod})) == 0 }

// detach deletes a VolumeAttachment, if it exists.
func (c *cluster) detach(name string) {
	c.t.Helper()
	err := c.kube.StorageV1().VolumeAttachments().Delete(c.t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}
