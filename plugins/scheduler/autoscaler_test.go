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

// The rules are cluster-autoscaler's (utils/kubernetes/listers.go) and Karpenter's
// (pkg/utils/pod/scheduling.go, FailedToSchedule); Karpenter ignores the status.
func addsNodes(conditions []corev1.PodCondition) (clusterAutoscaler, karpenter bool) {
	for _, c := range conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			clusterAutoscaler, karpenter = clusterAutoscaler || c.Status == corev1.ConditionFalse, true
		}
	}
	return clusterAutoscaler, karpenter
}

func (c *cluster) get(pod *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	found, err := c.kube.CoreV1().Pods(pod.Namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

func (c *cluster) waits(pod *corev1.Pod, want string) {
	c.t.Helper()
	c.told(pod, want)
	c.eventually("pod "+pod.Name+" to wait for its volumes", func() bool {
		return slices.ContainsFunc(c.get(pod).Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == volumehold.VolumeWait
		})
	})
	if ca, karpenter := addsNodes(c.get(pod).Status.Conditions); ca || karpenter {
		c.t.Errorf("pod %s waits for its volumes, and nodes are added for it: cluster-autoscaler %t, Karpenter %t", pod.Name, ca, karpenter)
	}
}

func (c *cluster) untried(pod *corev1.Pod) {
	c.t.Helper()
	c.writing.Lock()
	defer c.writing.Unlock()
	if said := c.said[pod.Name]; slices.Contains(said, corev1.PodReasonUnschedulable) {
		c.t.Errorf("pod %s was called %v", pod.Name, said)
	}
}

func (c *cluster) scheduledMessage(pod *corev1.Pod) string {
	for _, condition := range c.get(pod).Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Message
		}
	}
	return ""
}

func (c *cluster) share(name, claim string, priority int32) *corev1.Pod {
	c.t.Helper()
	pod := c.newPod(name, v1alpha1.SchedulerName, claim)
	pod.Spec.Priority = &priority
	return c.create(pod)
}

func (c *cluster) oncePod(claim string) {
	c.t.Helper()
	for _, object := range disk(claim) {
		switch object := object.(type) {
		case *corev1.PersistentVolume:
			object.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		case *corev1.PersistentVolumeClaim:
			object.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		}
		c.add(object)
	}
}

func TestMissingClaim(t *testing.T) {
	c := newCluster(t)
	pod := c.create(c.newPod("p", v1alpha1.SchedulerName, "p"))
	c.told(pod, `0/3 nodes are available: persistentvolumeclaim "p" not found.`)
	c.add(disk("p")...)
	c.bound(pod)
}

func TestVolumeOfOnePodInUse(t *testing.T) {
	c := newCluster(t)
	c.oncePod("p")
	first := c.share("first", "p", 0)
	c.bound(first)
	second := c.share("second", "p", 0)
	c.told(second, "ReadWriteOncePod access mode already in-use by another pod: volume p serves one pod at a time (ReadWriteOncePod) and is in use for pod shop/first")
	c.delete(first)
	c.bound(second)
}

// Stock kube-scheduler would place the pod: it is neither tried nor Unschedulable until a volume is free.
func TestGateVolumesAtTwoNodes(t *testing.T) {
	c := newCluster(t)
	a, b := c.pod("a", v1alpha1.SchedulerName, true), c.pod("b", v1alpha1.SchedulerName, true)
	c.bound(a)
	at := c.bound(b)
	both := c.newPod("both", v1alpha1.SchedulerName, "a")
	both.Spec.Volumes = append(both.Spec.Volumes, corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "b"}}})
	both = c.create(both)
	c.waits(both, "can't take volume b: "+at+" holds it for pod shop/b")
	c.waits(both, "No new node would help.")
	c.untried(both)
	c.delete(a)
	c.full(at)
	c.told(both, "exceed max volume count")
}

// The pod must be tried, since Moorage can't know its selector. No autoscaler adds nodes.
func TestHolderDoesNotSuitThePod(t *testing.T) {
	c := newCluster(t)
	first := c.pod("first", v1alpha1.SchedulerName, true)
	at := c.bound(first)
	second := c.newPod("second", v1alpha1.SchedulerName, "first")
	second.Spec.NodeSelector = map[string]string{"zone": "a"}
	second = c.create(second)
	c.waits(second, "1 node(s) didn't match Pod's node affinity/selector, 2 node(s) didn't satisfy plugin(s) [VolumeHold].")
	c.waits(second, "2 node(s) can't take volume first: "+at+" holds it for pod shop/first")
	c.label(at, "zone", "a")
	if got := c.bound(second); got != at {
		t.Errorf("bound to %s, and the volume is at %s", got, at)
	}
}

func TestNoFreeSlotAddsNodes(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"a", "b", "c"} {
		c.bound(c.pod(name, v1alpha1.SchedulerName, true))
	}
	last := c.pod("d", v1alpha1.SchedulerName, true)
	c.told(last, "3 node(s) exceed max volume count: no free slot")
	if ca, karpenter := addsNodes(c.get(last).Status.Conditions); !ca || !karpenter {
		t.Errorf("all slots are taken, and nodes are added: cluster-autoscaler %t, Karpenter %t: %+v", ca, karpenter, c.get(last).Status.Conditions)
	}
	c.add(node("n4"), csiNode("n4", 1))
	if at := c.bound(last); at != "n4" {
		t.Errorf("bound to %s", at)
	}
}
