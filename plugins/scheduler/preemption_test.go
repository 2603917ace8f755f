// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func (c *cluster) urgent(name string) *corev1.Pod {
	c.t.Helper()
	c.add(disk(name)...)
	return c.share(name, name, 1000)
}

func (c *cluster) left(pods []*corev1.Pod) []*corev1.Pod {
	c.t.Helper()
	var left []*corev1.Pod
	for _, pod := range pods {
		_, err := c.kube.CoreV1().Pods(pod.Namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
		if err == nil {
			left = append(left, pod)
		} else if !apierrors.IsNotFound(err) {
			c.t.Fatal(err)
		}
	}
	return left
}

func (c *cluster) filled() []*corev1.Pod {
	c.t.Helper()
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b", "c"} {
		pod := c.pod(name, v1alpha1.SchedulerName, true)
		c.bound(pod)
		pods = append(pods, pod)
	}
	return pods
}

func TestPreemptionWaitsForTheDetach(t *testing.T) {
	c := newCluster(t)
	pods := c.filled()
	for _, pod := range pods {
		c.add(attachmentOf(pod.Name, c.get(pod).Spec.NodeName))
	}
	urgent := c.urgent("urgent")
	var left []*corev1.Pod
	c.eventually("a pod to be preempted", func() bool { left = c.left(pods); return len(left) < len(pods) })
	c.bound(c.pod("plain", v1alpha1.SchedulerName, false))
	if at := c.get(urgent).Spec.NodeName; at != "" {
		t.Fatalf("bound to %s, whose slot is still taken", at)
	}
	victim := pods[slices.IndexFunc(pods, func(p *corev1.Pod) bool { return !slices.Contains(left, p) })]
	for _, name := range []string{"n1", "n2", "n3"} {
		attachment := attachmentOf(victim.Name, name).Name
		if err := c.kube.StorageV1().VolumeAttachments().Delete(t.Context(), attachment, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	at := c.bound(urgent)
	for _, pod := range c.left(pods) {
		if c.get(pod).Spec.NodeName == at {
			t.Errorf("bound to %s, where %s is", at, pod.Name)
		}
	}
	if n := len(c.left(pods)); n != 2 {
		t.Errorf("%d of 3 pods are left, want 2", n)
	}
}

// The scheduler may still be preempting, and keep the pod from the queue, when the plugin wakes it.
func TestVolumeOfOnePodIsPreempted(t *testing.T) {
	c := newCluster(t)
	c.oncePod("one")
	user := c.share("user", "one", 0)
	c.bound(user)
	urgent := c.share("urgent", "one", 1000)
	c.bound(urgent)
	if left := c.left([]*corev1.Pod{user}); len(left) > 0 {
		t.Error("both pods have the volume")
	}
}

func TestPreemptedBeforeItIsBound(t *testing.T) {
	c := newCluster(t)
	c.zoned("a", "a", "a")
	c.full("n2")
	c.full("n3")
	early := c.unprovisioned("early")
	if at := c.selected("early"); at != "n1" {
		t.Fatalf("early is at %s, which is full", at)
	}
	if at := c.bound(c.urgent("urgent")); at != "n1" {
		t.Errorf("urgent is at %s, which is full", at)
	}
	for _, pod := range c.left([]*corev1.Pod{early}) {
		if at := c.get(pod).Spec.NodeName; at != "" {
			t.Errorf("early is at %s, whose slot urgent has", at)
		}
	}
}

func attachmentOf(claim, node string) *storagev1.VolumeAttachment {
	pv := "pv-" + claim
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: claim}, ledger.NodeName(node)), UID: "va"},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}
}
