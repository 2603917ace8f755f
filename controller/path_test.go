// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestPodWithoutTicket(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.lead(1)
	c.Forget()
	c.pod("db", "n1", "data", false)
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	c.wrote("create volumeattachments "+va("data", "n1"), "patch nodes/status n1")

	c.node("n1", []string{"data"}) // the kubelet mounts it
	c.until("that is known", func() bool {
		return c.observer.Snapshot().Volume(ledger.VolumeID{Driver: driver, Handle: "data"}).OnNode("n1").InUse
	})
	c.Forget()
	c.Remove("pods", "shop", "db")
	c.node("n1", nil) // and has unmounted it
	c.until("the attachment is gone", func() bool { return c.attachment("data", "n1") == nil })
	c.wrote("patch nodes/status n1", "delete volumeattachments "+va("data", "n1"))
	if c.reported("data", "n1") {
		t.Error("volumesAttached names it")
	}
}

func TestVolumeInUseStays(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.disk("other")
	c.lead(1)
	c.pod("db", "n1", "data", false)
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	c.node("n1", []string{"data"})
	c.Remove("pods", "shop", "db")
	c.pod("later", "n1", "other", false) // something else goes on meanwhile
	c.until("another volume is reported", func() bool { return c.reported("other", "n1") })
	if c.attachment("data", "n1") == nil || !c.reported("data", "n1") {
		t.Error("a volume in use was detached")
	}
	c.node("n1", nil)
	c.until("the volume is detached", func() bool { return c.attachment("data", "n1") == nil })
}

func TestBoundPodIsTold(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.lead(1)
	c.pod("db", "n1", "data", true)
	c.until("the pod is told", func() bool {
		var pod corev1.Pod
		c.Get("pods", "shop", "db", &pod)
		return len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Status == corev1.ConditionTrue
	})
	var pod corev1.Pod
	c.Get("pods", "shop", "db", &pod)
	if pod.Status.Conditions[0].Type != v1alpha1.PodSafeToMount || pod.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("conditions %+v", pod.Status.Conditions)
	}
	status, err := v1alpha1.ParseVolumeStatus(pod.Annotations[v1alpha1.AnnotationVolumeStatus])
	want := v1alpha1.PodVolumeStatus{Name: "v", Claim: "data", PersistentVolume: "data", Node: "n1", SafeToMount: true, Transitions: 1_000_000_001}
	if err != nil || len(status.Volumes) != 1 || status.Volumes[0] != want {
		t.Errorf("volume status %+v (%v)", status, err)
	}
}

func TestLimit(t *testing.T) {
	c := newCluster(t, 2, "n1")
	for _, name := range names("p", 5) {
		c.disk(name)
		c.ticket(name, "n1", name)
	}
	c.lead(1)
	count := func(status metav1.ConditionStatus) (n int) {
		for _, name := range names("p", 5) {
			if g := c.granted(name); g != nil && g.Status == status {
				n++
			}
		}
		return n
	}
	c.until("all are decided", func() bool { return count(metav1.ConditionTrue)+count(metav1.ConditionUnknown) == 5 })
	if count(metav1.ConditionTrue) != 2 {
		t.Errorf("%d granted on 2 slots", count(metav1.ConditionTrue))
	}
	for _, name := range names("p", 5) {
		if g := c.granted(name); g.Status == metav1.ConditionUnknown && (g.Reason != "NoFreeSlot" || !strings.Contains(g.Message, "2 of 2 used")) {
			t.Errorf("%s is told %q: %s", name, g.Reason, g.Message)
		}
	}
}

func TestHandover(t *testing.T) {
	c := newCluster(t, 4, "n1", "n2")
	c.disk("data")
	c.lead(1)
	c.pod("old", "n1", "data", false)
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	c.pod("new", "n2", "data", false)
	c.until("the new pod waits for the volume", func() bool {
		return c.observer.Snapshot().Volume(ledger.VolumeID{Driver: driver, Handle: "data"}).OnNode("n2") != nil
	})
	c.Forget()
	c.Remove("pods", "shop", "old")
	c.until("the volume is at the other node", func() bool { return c.reported("data", "n2") })
	if got := c.attachment("data", "n2").Annotations[v1alpha1.AnnotationTransitions]; got != "1000000002" {
		t.Errorf("transitions %s", got)
	}
	var order []string
	for _, w := range c.Writes() {
		if strings.Contains(w, "volumeattachments") || strings.Contains(w, "nodes/status") {
			order = append(order, w)
		}
	}
	want := "patch nodes/status n1, delete volumeattachments " + va("data", "n1") + ", create volumeattachments " + va("data", "n2") + ", patch nodes/status n2"
	if strings.Join(order, ", ") != want {
		t.Errorf("writes %v", order)
	}
}

// The controller dies during the failing detach; the pod comes back.
func TestReaddAfterFailedDetach(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	stop := c.lead(1)
	c.pod("db", "n1", "data", false)
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	c.detachFails.Store(&storagev1.VolumeError{Message: "the disk is busy", ErrorCode: ptr.To[int32](13)})
	c.Remove("pods", "shop", "db")
	c.until("the hold says that the detach fails", func() bool {
		conditions := c.hold("data").Conditions
		pending := meta.FindStatusCondition(conditions, v1alpha1.HoldDetachPending)
		return pending != nil && pending.Reason == "DetachFailed" && meta.IsStatusConditionTrue(conditions, v1alpha1.HoldSafeToDetach)
	})
	stop()
	c.pod("again", "n1", "data", true)
	c.lead(2)
	c.until("the pod is told", func() bool {
		var pod corev1.Pod
		c.Get("pods", "shop", "again", &pod)
		return len(pod.Status.Conditions) == 1 && strings.Contains(pod.Status.Conditions[0].Message, "the disk is busy")
	})
	c.detachFails.Store(nil)
	c.Put("volumeattachments", func() *storagev1.VolumeAttachment { // the attacher tries again
		a := c.attachment("data", "n1")
		a.Status.DetachError = nil
		return a
	}())
	c.until("the volume is reported again", func() bool { return c.reported("data", "n1") && c.attachment("data", "n1").DeletionTimestamp == nil })
}

// The hold has two writes beside its creation.
func TestRefusedAttach(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.attachFails.Store(&storagev1.VolumeError{Message: "no such machine", ErrorCode: ptr.To[int32](7)})
	c.lead(1)
	c.pod("db", "n1", "data", true)
	const words = "no such machine (PermissionDenied)"
	c.until("the hold says that the attach fails", func() bool {
		hold := c.hold("data")
		refused := meta.FindStatusCondition(hold.Conditions, v1alpha1.HoldAttached)
		return refused != nil && refused.Status == metav1.ConditionFalse && refused.Reason == "AttachFailed" && refused.ObservedGeneration > 0 &&
			strings.Contains(refused.Message, words) && hold.Summary.State == v1alpha1.HoldStateAttachFailed
	})
	c.until("the pod is told", func() bool {
		var pod corev1.Pod
		c.Get("pods", "shop", "db", &pod)
		return len(pod.Status.Conditions) == 1 && strings.Contains(pod.Status.Conditions[0].Message, words)
	})
	c.attachFails.Store(nil)
	c.Put("volumeattachments", func() *storagev1.VolumeAttachment { // the attacher tries again
		a := c.attachment("data", "n1")
		a.Status.AttachError = nil
		return a
	}())
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	c.until("the hold says nothing of it any more", func() bool {
		hold := c.hold("data")
		return len(hold.Conditions) == 0 && hold.Summary.State == v1alpha1.HoldStateHeld
	})
	var writes []string
	for _, w := range c.Writes() {
		if verb, _, ok := strings.Cut(w, " volumeholds"); ok {
			writes = append(writes, verb)
		}
	}
	if strings.Join(writes, ", ") != "create, update" {
		t.Errorf("the hold is written %v", writes)
	}
}

// All commits of the predecessor fail before the first grant.
func TestTakeOver(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.ticket("db", "n1", "data")
	var before v1alpha1.VolumeTicket
	c.Get("volumetickets", "shop", "uid-db", &before)
	c.Forget()
	c.lead(7)
	c.until("the ticket is granted", func() bool { g := c.granted("db"); return g != nil && g.Status == metav1.ConditionTrue })
	if writes := c.Writes(); writes[0] != "update volumetickets/status shop/uid-db" || writes[1] != "update volumetickets/status shop/uid-db" {
		t.Errorf("writes %v", writes)
	}
	if _, err := c.Moorage.VolumeTickets("shop").UpdateStatus(t.Context(), &before, metav1.UpdateOptions{}); err == nil {
		t.Error("a commit on the version of the leader before it succeeds")
	}
	var after v1alpha1.VolumeTicket
	c.Get("volumetickets", "shop", "uid-db", &after)
	if after.Status.Epoch != 7 {
		t.Errorf("epoch %d", after.Status.Epoch)
	}
}

func TestTicketForAHeldVolume(t *testing.T) {
	c := newCluster(t, 4, "n1", "n2")
	c.disk("data")
	c.lead(1)
	c.pod("old", "n1", "data", false)
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	c.ticket("new", "n2", "data")
	c.until("the ticket is told", func() bool { g := c.granted("new"); return g != nil && g.Reason == "HeldElsewhere" })
	if g := c.granted("new"); g.Reason != "HeldElsewhere" || !strings.Contains(g.Message, "shop/old") {
		t.Errorf("Granted is %+v", g)
	}
}

func TestNodeExhausted(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.attachFails.Store(&storagev1.VolumeError{Message: "too many disks", ErrorCode: ptr.To[int32](8)})
	c.lead(1)
	c.ticket("db", "n1", "data")
	c.until("the ticket is told", func() bool {
		var ticket v1alpha1.VolumeTicket
		c.Get("volumetickets", "shop", "uid-db", &ticket)
		s := meta.FindStatusCondition(ticket.Status.Conditions, v1alpha1.TicketSatisfied)
		return s != nil && s.Status == metav1.ConditionFalse && strings.Contains(s.Message, "too many disks (ResourceExhausted)")
	})
}

func TestManualTicket(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.lead(1)
	c.Put("volumetickets", &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "keep"},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n1", TTLSeconds: ptr.To[int64](1),
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
	})
	var satisfied bool
	c.until("the ticket is satisfied, and gone when its time is over", func() bool {
		var ticket v1alpha1.VolumeTicket
		there := c.Get("volumetickets", "shop", "keep", &ticket)
		satisfied = satisfied || meta.IsStatusConditionTrue(ticket.Status.Conditions, v1alpha1.TicketSatisfied)
		return satisfied && !there
	})
	c.until("the volume is free", func() bool { return c.attachment("data", "n1") == nil && !c.reported("data", "n1") })
}
