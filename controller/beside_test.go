// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func cooperative(c *Config) { c.Mode = ModeCooperative }

// report does what the attach/detach controller does with what is attached.
func (c *cluster) report(node string, handles ...string) {
	var n corev1.Node
	c.Get("nodes", "", node, &n)
	n.Status.VolumesAttached = nil
	for _, handle := range handles {
		n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: unique(handle)})
	}
	c.Put("nodes", &n)
}

// never fails when a write of this kind was made.
func (c *cluster) never(part string) {
	c.t.Helper()
	if i := slices.IndexFunc(c.Writes(), func(w string) bool { return strings.Contains(w, part) }); i >= 0 {
		c.t.Errorf("it wrote: %s", c.Writes()[i])
	}
}

// Beside the attach/detach controller: attached for a pod that is bound, and
// that controller reports, and detaches.
func TestCooperative(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.leadAs(1, cooperative)
	c.Forget()
	c.pod("db", "", "data", true)
	c.ticket("db", "n1", "data")
	c.until("the ticket is granted", func() bool { g := c.granted("db"); return g != nil && g.Reason == v1alpha1.ReasonGranted })
	c.pod("db", "n1", "data", true)
	c.until("the volume is attached, and the reservation over", func() bool {
		a := c.attachment("data", "n1")
		return a != nil && a.Status.Attached && !c.hasTicket("db")
	})
	c.wrote("create volumeholds "+vh("data"), "update volumetickets/status shop/uid-db",
		"create volumeattachments "+va("data", "n1"), "delete volumetickets shop/uid-db")
	c.report("n1", "data")
	c.until("the pod is told", func() bool {
		var pod corev1.Pod
		c.Get("pods", "shop", "db", &pod)
		return len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Status == corev1.ConditionTrue
	})
	// The other controller's detach.
	c.Remove("pods", "shop", "db")
	c.report("n1")
	c.Remove("volumeattachments", "", va("data", "n1"))
	c.until("the hold is free", func() bool { return c.hold("data").Holder == nil })
	c.never("nodes/status")
	c.never("delete volumeattachments")
}

// Nothing is written for the volume of a pod that has not opted in, nor on the pod.
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

// What the other controller never heard of is taken back; what it reports is
// its own to detach.
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

// kube-controller-manager restarts and deletes what it knows no pod for: it is
// made again, for as long as the ticket is granted.
func TestCooperativeBeforeBind(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.leadAs(1, func(config *Config) { cooperative(config); config.AttachBeforeBind = true })
	c.pod("db", "", "data", true)
	c.ticket("db", "n1", "data")
	c.until("the volume is attached before the bind", func() bool { a := c.attachment("data", "n1"); return a != nil && a.Status.Attached })
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

// Made for one node, and somebody bound the pod to another: the attach/detach
// controller attaches there, and the first is taken back.
func TestCooperativeBoundElsewhere(t *testing.T) {
	c := newCluster(t, 4, "n1", "n2")
	c.disk("data")
	c.leadAs(1, func(config *Config) { cooperative(config); config.AttachBeforeBind = true })
	c.pod("db", "", "data", true)
	c.ticket("db", "n1", "data")
	c.until("the volume is attached before the bind", func() bool { a := c.attachment("data", "n1"); return a != nil && a.Status.Attached })
	c.pod("db", "n2", "data", true)
	theirs := c.attachment("data", "n1")
	theirs.ObjectMeta.Name, theirs.UID, theirs.ResourceVersion, theirs.Labels = va("data", "n2"), "", "", nil
	theirs.Spec.NodeName = "n2"
	c.Put("volumeattachments", theirs)
	c.report("n2", "data")
	c.until("the first attachment is gone, and the hold with the pod", func() bool {
		h := c.hold("data")
		return c.attachment("data", "n1") == nil && h.Holder != nil && h.Holder.Node == "n2"
	})
	c.never("nodes/status")
	c.never("delete volumeattachments " + va("data", "n2"))
}

// Without the wish to attach early, a policy that binds after the attach is
// refused, and says how to have it: once, on the ticket that asks and on the policy.
// A controller that may attach early takes that back.
func TestCooperativeRefusesBindAfterAttached(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	policy := &v1alpha1.AttachPolicy{Spec: v1alpha1.AttachPolicySpec{Driver: driver, BindAfter: v1alpha1.BindAfterAttached}}
	policy.Name = "late"
	c.Put("attachpolicies", policy)
	stop := c.leadAs(1, cooperative)
	c.Forget()
	c.pod("db", "", "data", true)
	c.ticket("db", "n1", "data")
	c.until("the ticket is refused", func() bool {
		g := c.granted("db")
		return g != nil && g.Reason == "NotBeforeBind" && strings.Contains(g.Message, "--attach-before-bind") && strings.HasSuffix(g.Message, "AttachPolicy late")
	})
	c.until("the policy is refused", func() bool {
		r := c.refused("late")
		return r != nil && r.Status == metav1.ConditionTrue && r.Reason == "NotBeforeBind" && strings.Contains(r.Message, "--attach-before-bind")
	})
	// Whatever is looked at again, nothing is written again.
	c.Put("storageclasses", &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: driver})
	c.disk("other")
	c.pod("other", "n1", "other", true)
	c.until("another pod, that nobody placed by the policy, has its volume", func() bool { a := c.attachment("other", "n1"); return a != nil && a.Status.Attached })
	stop()
	about := slices.DeleteFunc(c.Writes(), func(w string) bool {
		return !strings.Contains(w, "volumetickets") && !strings.Contains(w, "attachpolicies")
	})
	slices.Sort(about)
	about = slices.DeleteFunc(about, func(w string) bool { return w == "update attachpolicies/status late" })
	if want := []string{"update volumetickets/status shop/uid-db"}; !slices.Equal(about, want) {
		t.Errorf("it wrote %v, want %v", about, want)
	}

	c.Forget()
	c.leadAs(2, func(config *Config) { cooperative(config); config.AttachBeforeBind = true })
	c.until("the policy is not refused any more", func() bool { return c.refused("late") == nil })
}

// refused is the condition Refused of a policy; nil when it has none.
func (c *cluster) refused(policy string) *metav1.Condition {
	var object v1alpha1.AttachPolicy
	c.Get("attachpolicies", "", policy, &object)
	return meta.FindStatusCondition(object.Status.Conditions, v1alpha1.PolicyRefused)
}

// In Standalone mode a policy is never written: there is nothing to say.
func TestPoliciesAreNotWritten(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	policy := &v1alpha1.AttachPolicy{Spec: v1alpha1.AttachPolicySpec{Driver: driver, BindAfter: v1alpha1.BindAfterAttached}}
	policy.Name = "late"
	c.Put("attachpolicies", policy)
	c.pod("db", "", "data", true)
	c.ticket("db", "n1", "data")
	c.lead(1)
	c.until("the volume is attached before the bind", func() bool { a := c.attachment("data", "n1"); return a != nil && a.Status.Attached })
	c.never("attachpolicies")
}
