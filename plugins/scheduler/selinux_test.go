// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func (c *cluster) labelled(name, claim, level string, priority int32) *corev1.Pod {
	c.t.Helper()
	pod := c.newPod(name, v1alpha1.SchedulerName, claim)
	pod.Spec.Priority = &priority
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: level}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	return c.create(pod)
}

func TestPodsWithAnotherSELinuxLabelWait(t *testing.T) {
	c := newCluster(t)
	yes := true
	c.add(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver, ResourceVersion: c.nextVersion()}, Spec: storagev1.CSIDriverSpec{AttachRequired: &yes, SELinuxMount: &yes}})
	for _, name := range []string{"n1", "n2", "n3"} {
		c.label(name, "moorage.dev/selinux-mount", "true")
	}
	c.add(disk("data")...)
	first := c.labelled("first", "data", "s0:c1,c2", 0)
	at := c.bound(first)
	second := c.labelled("second", "data", "s0:c3,c4", 0)
	c.told(second, "volume data is used at "+at+" with another SELinux label for pod shop/first")
	same := c.labelled("same", "data", "s0:c1,c2", 0)
	if got := c.bound(same); got != at {
		t.Errorf("the pod with the same label is at %s, the volume at %s", got, at)
	}
	if got := c.get(second).Spec.NodeName; got != "" {
		t.Fatalf("bound to %s, where the volume is mounted with another label", got)
	}
	c.delete(first)
	c.told(second, "for pod shop/same")
	c.delete(same)
	c.bound(second)
	urgent := c.labelled("urgent", "data", "s0:c5,c6", 1000)
	c.bound(urgent)
	if left := c.left([]*corev1.Pod{second}); len(left) > 0 {
		t.Error("both pods have the volume")
	}
}
