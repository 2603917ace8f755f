// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func cooperative(c *Config) { c.Mode = ModeCooperative }

func (c *cluster) report(node string, handles ...string) {
	var n corev1.Node
	c.Get("nodes", "", node, &n)
	n.Status.VolumesAttached = nil
	for _, handle := range handles {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: unique(handle)})
	}
	c.Put("nodes", &n)
}

func (c *cluster) never(part string) {
	c.t.Helper()
	if i := slices.IndexFunc(c.Writes(), func(w string) bool { return strings.Contains(w, part) }); i >= 0 {
		c.t.Errorf("it wrote: %s", c.Writes()[i])
	}
}

func TestCooperative(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.leadAs(1, cooperative)
	c.pod("db", "n1", "data", true)
	c.until("the volume is attached", func() bool { a := c.attachment("data", "n1"); return a != nil && a.Status.Attached })
	c.report("n1", "data")
	c.until("the pod is told", func() bool {
		var pod corev1.Pod
		c.Get("pods", "shop", "db", &pod)
		return len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Status == corev1.ConditionTrue
	})
	// kube-controller-manager's detach.
	c.Remove("pods", "shop", "db")
	c.report("n1")
	c.Remove("volumeattachments", "", va("data", "n1"))
	c.until("the hold is free", func() bool { return c.hold("data").Holder == nil })
	c.never("nodes/status")
	c.never("delete volumeattachments")
}

func TestCooperativeLeavesBystandersAlone(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("theirs")
	c.disk("data")
	c.pod("stranger", "n1", "theirs", false)
	c.leadAs(1, cooperative)
	c.pod("db", "n1", "data", true)
	c.until("the volume of who has opted in is attached", func() bool { a := c.attachment("data", "n1"); return a != nil && a.Status.Attached })
	c.Remove("pods", "shop", "stranger")
	c.Remove("pods", "shop", "db")
	c.until("that volume's hold is free", func() bool { return c.hold("data").Holder == nil })
	for _, w := range c.Writes() {
		if strings.Contains(w, vh("theirs")) || strings.Contains(w, va("theirs", "n1")) || strings.Contains(w, "stranger") {
			t.Errorf("written: %s", w)
		}
	}
}

// A reported volume is left for kube-controller-manager to detach.
func TestCooperativeLeavesNothing(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("unheard")
	c.disk("theirs")
	c.leadAs(1, cooperative)
	for _, name := range []string{"unheard", "theirs"} {
		c.pod(name, "n1", name, true)
		c.until("the volume is attached", func() bool { a := c.attachment(name, "n1"); return a != nil && a.Status.Attached })
	}
	c.report("n1", "theirs")
	c.Forget()
	c.Remove("pods", "shop", "theirs")
	c.Remove("pods", "shop", "unheard")
	c.until("what nobody heard of is gone", func() bool { return c.attachment("unheard", "n1") == nil && c.hold("unheard").Holder == nil })
	c.never("nodes/status")
	c.never("delete volumeattachments " + va("theirs", "n1"))
}

// A restarted kube-controller-manager deletes attachments without a known pod.
func TestCooperativeTicketIsAttachedAgain(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.leadAs(1, cooperative)
	c.ticket("db", "n1", "data")
	c.until("the volume is attached for the ticket", func() bool { a := c.attachment("data", "n1"); return a != nil && a.Status.Attached })
	first := c.attachment("data", "n1").UID
	if err := c.Kube.StorageV1().VolumeAttachments().Delete(t.Context(), va("data", "n1"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.until("and attached again", func() bool {
		a := c.attachment("data", "n1")
		return a != nil && a.UID != first && a.Status.Attached
	})
	c.never("nodes/status")
}
