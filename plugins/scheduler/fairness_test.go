// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func (c *cluster) disks(number int) {
	c.t.Helper()
	for i := range number {
		c.add(disk(waits(i))...)
	}
}

func waits(i int) string { return fmt.Sprintf("waits-%03d", i) }

// The disks must be older than the running pods: a new volume causes one more try.
func (c *cluster) queued(number int) []*corev1.Pod {
	c.t.Helper()
	var pods []*corev1.Pod
	for i := range number {
		name := waits(i)
		pod := c.newPod(name, v1alpha1.SchedulerName, name)
		pod.CreationTimestamp = metav1.Unix(int64(1000+i), 0)
		pods = append(pods, c.create(pod))
	}
	for _, pod := range pods {
		c.told(pod, "3 node(s) exceed max volume count: no free slot")
	}
	return pods
}

// About one pod is tried per freed slot, the oldest first, and no slot stays free.
func TestOneAttemptForOneSlot(t *testing.T) {
	c := newCluster(t)
	const slots, queue = 10, 90
	c.disks(queue)
	running := c.filled()
	waiting := c.queued(queue)
	before := c.attempts()
	for i := range slots {
		c.delete(running[0])
		c.bound(waiting[i])
		running = append(running[1:], waiting[i])
	}
	c.bound(c.pod("plain", v1alpha1.SchedulerName, false))
	n := c.attempts() - before - 1
	t.Logf("%d attempts for %d slots while %d pods waited", n, slots, len(waiting))
	if n > slots*12/10 {
		t.Errorf("%d attempts for %d slots, want at most 1.2 for each", n, slots)
	}
}

func TestWhoCanNotUseASlotPassesItOn(t *testing.T) {
	c := newCluster(t)
	c.disks(3)
	c.add(disk("picky")...)
	running := c.filled()
	picky := c.newPod("picky", v1alpha1.SchedulerName, "picky")
	priority, never := int32(1000), corev1.PreemptNever
	picky.Spec.Priority, picky.Spec.PreemptionPolicy = &priority, &never
	picky.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
	picky = c.create(picky)
	c.told(picky, "0/3 nodes are available")
	waiting := c.queued(3)
	for i, pod := range waiting {
		c.delete(running[i])
		c.bound(pod)
	}
	if at := c.get(picky).Spec.NodeName; at != "" {
		t.Errorf("the pod that asks for more CPU than there is was bound to %s", at)
	}
}
