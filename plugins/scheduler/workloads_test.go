// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func (c *cluster) change(pod *corev1.Pod, change func(*corev1.Pod)) {
	c.t.Helper()
	c.writing.Lock()
	defer c.writing.Unlock()
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	found, err := c.kube.Tracker().Get(pods, pod.Namespace, pod.Name)
	if err != nil {
		c.t.Fatal(err)
	}
	next := found.(*corev1.Pod).DeepCopy()
	change(next)
	next.ResourceVersion = c.nextVersion()
	if err := c.kube.Tracker().Update(pods, next, pod.Namespace); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) elsewhere(than string) string {
	c.t.Helper()
	at := map[string]string{"n1": "n2", "n2": "n3", "n3": "n1"}[than]
	c.label(at, "zone", "elsewhere")
	return at
}

func (c *cluster) of(kind, name string, number int, claim, zone string) *corev1.Pod {
	c.t.Helper()
	pod := c.newPod(name, v1alpha1.SchedulerName, claim)
	pod.UID = types.UID("uid-" + name + "-" + strconv.Itoa(number))
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "of-" + claim, UID: "owner"}}
	if zone != "" {
		pod.Spec.NodeSelector = map[string]string{"zone": zone}
	}
	return c.create(pod)
}

// A rollout's new pod beside the last pod needs no slot of its own.
func TestPodsOfADeployment(t *testing.T) {
	c := newCluster(t)
	c.add(disk("web")...)
	at := c.bound(c.of("ReplicaSet", "web-old", 1, "web", ""))
	if got := c.bound(c.of("ReplicaSet", "web-new", 1, "web", "")); got != at {
		t.Errorf("the new pod is at %s, and the volume at %s", got, at)
	}
}

// It is bound while its volume is still attached at the old node.
func TestPodsOfAStatefulSet(t *testing.T) {
	c := newCluster(t)
	c.add(disk("data-db-0")...)
	first := c.of("StatefulSet", "db-0", 1, "data-db-0", "")
	at := c.bound(first)
	c.add(attachmentOf("data-db-0", at))
	to := c.elsewhere(at)
	c.delete(first)
	second := c.of("StatefulSet", "db-0", 2, "data-db-0", "elsewhere")
	if got := c.bound(second); got != to {
		t.Errorf("the second pod is at %s, want %s", got, to)
	}
	back := c.elsewhere(to)
	now := metav1.Now()
	c.change(second, func(p *corev1.Pod) { p.DeletionTimestamp = &now })
	if got := c.bound(c.of("StatefulSet", "db-1", 1, "data-db-0", "elsewhere")); got != back && got != to {
		t.Errorf("the third pod is at %s, want %s or %s", got, back, to)
	}
}

func TestPodsOfAJob(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		t.Run(string(phase), func(t *testing.T) {
			c := newCluster(t)
			c.add(disk("batch")...)
			first := c.of("Job", "batch-a", 1, "batch", "")
			at := c.bound(first)
			c.add(attachmentOf("batch", at))
			to := c.elsewhere(at)
			next := c.of("Job", "batch-b", 1, "batch", "elsewhere")
			c.told(next, "node(s) didn't match Pod's node affinity/selector")
			c.change(first, func(p *corev1.Pod) { p.Status.Phase = phase })
			if got := c.bound(next); got != to {
				t.Errorf("the next pod is at %s, want %s", got, to)
			}
		})
	}
}

// It evicts no pod, and lets none in.
func TestLimitLoweredUnderUse(t *testing.T) {
	c := newCluster(t)
	pods := map[string]*corev1.Pod{}
	for _, pod := range c.filled() {
		pods[c.get(pod).Spec.NodeName] = pod
	}
	c.full("n1")
	var waits *corev1.Pod
	probes := 0
	c.eventually("the limit to be seen", func() bool {
		if waits != nil {
			c.delete(waits)
		}
		probes++
		waits = c.pod("probe-"+strconv.Itoa(probes), v1alpha1.SchedulerName, true)
		c.told(waits, "no free slot")
		return strings.Contains(c.scheduledMessage(waits), "(1 of 0 used)")
	})
	c.told(waits, "0/3 nodes are available: 1 node(s) exceed max volume count: no free slot of driver disk.example.com (1 of 0 used), "+
		"2 node(s) exceed max volume count: no free slot of driver disk.example.com (1 of 1 used)")
	if n := len(c.left([]*corev1.Pod{pods["n1"]})); n != 1 {
		t.Error("who was there is gone")
	}
	c.delete(pods["n1"])
	c.delete(pods["n2"])
	if at := c.bound(waits); at != "n2" {
		t.Errorf("bound to %s, want n2", at)
	}
}
