// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"bytes"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Changes at another plugin's node wake the pod: no more pods are evicted, and it gets its slot.
func TestNothingMoreIsEvictedWhileASlotIsDetached(t *testing.T) {
	c := newCluster(t)
	pods, occupant := c.filledBesideSmall()
	urgent := c.urgent("urgent")
	c.eventually("a pod to be preempted", func() bool { return len(c.left(pods)) == 2 })
	c.eventually("the pod to be nominated", func() bool { return c.get(urgent).Status.NominatedNodeName != "" })
	c.delete(occupant)
	c.tryAgain(urgent, 3)
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

// As before, but only the scheduler's memory has the nomination.
func TestNothingMoreIsEvictedWhereTheNominationIsNotWritten(t *testing.T) {
	c := newCluster(t)
	c.kube.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		patch, ok := action.(clienttesting.PatchAction)
		if ok && bytes.Contains(patch.GetPatch(), []byte("nominatedNodeName")) {
			return true, nil, apierrors.NewInternalError(errors.New("not now"))
		}
		return false, nil, nil
	})
	pods, occupant := c.filledBesideSmall()
	urgent := c.urgent("urgent")
	c.eventually("a pod to be preempted", func() bool { return len(c.left(pods)) == 2 })
	c.delete(occupant)
	c.tryAgain(urgent, 3)
	if n := len(c.left(pods)); n != 2 {
		t.Errorf("%d of 3 pods are left, want 2: one slot was freed already", n)
	}
}

func (c *cluster) filledBesideSmall() (pods []*corev1.Pod, occupant *corev1.Pod) {
	c.t.Helper()
	pods = c.filled()
	for _, pod := range pods {
		c.add(attachmentOf(pod.Name, c.get(pod).Spec.NodeName))
	}
	c.add(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: new(true)}})
	small := node("n4")
	small.Labels = map[string]string{"kind": "small"}
	small.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
	c.add(small)
	occupant = c.newPod("occupant", v1alpha1.SchedulerName, "")
	most := int32(2000)
	occupant.Spec.Priority, occupant.Spec.NodeSelector = &most, small.Labels
	occupant = c.create(occupant)
	c.bound(occupant)
	return pods, occupant
}

func (c *cluster) tryAgain(pod *corev1.Pod, times int) {
	c.t.Helper()
	c.attempts() // counts from here on
	for range times {
		tried := c.attempts()
		c.eventually("the pod to be tried again", func() bool {
			c.scheduler.SchedulingQueue.Activate(klog.Background(), map[string]*corev1.Pod{pod.Name: c.get(pod)})
			return c.attempts() > tried
		})
	}
}

func (c *cluster) gone(pod *corev1.Pod) bool { return len(c.left([]*corev1.Pod{pod})) == 0 }

func (c *cluster) detach(name string) {
	c.t.Helper()
	err := c.kube.StorageV1().VolumeAttachments().Delete(c.t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}
