// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (c *cluster) terminating(name string) {
	var pod corev1.Pod
	c.Get("pods", "shop", name, &pod)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(2000, 0)}, new(int64(30))
	c.Put("pods", &pod)
}

// The terminating pods of a node that is out of service and not Ready are removed; no others.
func TestOutOfService(t *testing.T) {
	c := newCluster(t, 4, "n1", "n2")
	for _, name := range []string{"data", "other"} {
		c.disk(name)
	}
	c.pod("db", "n1", "data", false)
	c.Put("pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}, Spec: corev1.PodSpec{NodeName: "n1"}})
	c.Put("pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stays", UID: "uid-stays"}, Spec: corev1.PodSpec{NodeName: "n1"}})
	c.lead(1)
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	c.node("n1", []string{"data"})
	c.terminating("db")
	c.terminating("web")
	change := func(what func(*corev1.Node)) {
		var n corev1.Node
		c.Get("nodes", "", "n1", &n)
		what(&n)
		c.Put("nodes", &n)
	}
	change(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	})
	c.until("the taint is known", func() bool { return c.observer.Snapshot().Node("n1").OutOfService })
	c.pod("later", "n2", "other", false) // something else goes on meanwhile
	c.until("another volume is reported", func() bool { return c.reported("other", "n2") })
	c.never("delete pods")

	change(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
	c.pod("again", "n2", "data", false)
	c.until("the volume is elsewhere", func() bool { return c.reported("data", "n2") })
	c.until("the pods are removed", func() bool {
		return !c.Get("pods", "shop", "db", &corev1.Pod{}) && !c.Get("pods", "shop", "web", &corev1.Pod{})
	})
	var removed []string
	for _, w := range c.Writes() {
		if pod, ok := strings.CutPrefix(w, "delete pods shop/"); ok && !slices.Contains(removed, pod) {
			removed = append(removed, pod)
		}
	}
	slices.Sort(removed)
	if !slices.Equal(removed, []string{"db", "web"}) {
		t.Errorf("removed %v", removed)
	}
}
