// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func (c *cluster) asks(name, node string, claims ...string) {
	k := &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: node},
	}
	for _, claim := range claims {
		k.Spec.Volumes = append(k.Spec.Volumes, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: claim}})
	}
	c.Put("volumetickets", k)
}

func (c *cluster) answer(name string) string {
	var t v1alpha1.VolumeTicket
	c.Get("volumetickets", "shop", name, &t)
	if g := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted); g != nil {
		return g.Reason
	}
	return ""
}

// The first ticket's grant can't be written; its cause to wait wakes the second.
func TestWhoWaitsIsWokenByWhatAnotherIsTold(t *testing.T) {
	c := newCluster(t, 4, "n1", "n2", "n4")
	c.disk("v")
	c.disk("w")
	c.lead(1)
	refuses := c.refuseStatus("b-t")
	c.asks("b-t", "n2", "v", "w")
	c.asks("c-u", "n4", "v")
	c.until("the second waits for the first", func() bool { return c.answer("c-u") == "HeldElsewhere" })
	c.pod("has", "n1", "w", false)
	c.until("a pod has one of the volumes", func() bool { return c.reported("w", "n1") })
	refuses.Store(false)
	c.until("the first waits for the pod", func() bool { return c.answer("b-t") == "HeldElsewhere" })
	c.until("the second has the other volume", func() bool { return c.answer("c-u") == v1alpha1.ReasonGranted })
}

// The claim leads to no volume yet.
func TestClaimThatIsThereIsNotCalledMissing(t *testing.T) {
	c := newCluster(t, 2, "n1")
	c.Put("storageclasses", &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: driver, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)})
	c.lead(1)
	c.asks("t", "n1", "data")
	c.until("it is told that there is no claim", func() bool { return c.answer("t") == "ClaimMissing" })
	c.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("late"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	})
	c.until("it is told that the claim is not bound", func() bool { return c.answer("t") == "ClaimUnbound" })
}

func TestPodIsToldOfItsClaim(t *testing.T) {
	c := newCluster(t, 2, "n1")
	c.lead(1)
	c.pod("db", "n1", "data", true)
	told := func(reason string) bool {
		var pod corev1.Pod
		return c.Get("pods", "shop", "db", &pod) && strings.Contains(pod.Annotations[v1alpha1.AnnotationVolumeStatus], `"reason":"`+reason+`"`)
	}
	c.until("it is told that there is no claim", func() bool { return told("ClaimMissing") })
	c.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost},
	})
	c.until("it is told that the claim has lost its volume", func() bool { return told("ClaimLost") })
}

// detachDelay yields to the last slot.
func TestDelayedVolumeLeavesAFullNode(t *testing.T) {
	c := newCluster(t, 2, "n1")
	c.Put("attachpolicies", &v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: "delay"}, Spec: v1alpha1.AttachPolicySpec{Driver: driver, DetachDelay: &metav1.Duration{Duration: time.Hour}}})
	c.disk("one")
	c.disk("two")
	for _, name := range []string{"one", "two"} { // shared, so that no hold is written
		var pv corev1.PersistentVolume
		c.Get("persistentvolumes", "", name, &pv)
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		c.Put("persistentvolumes", &pv)
	}
	c.lead(1)
	c.pod("a", "n1", "one", false)
	c.until("the first is attached", func() bool { return c.reported("one", "n1") })
	c.Remove("pods", "shop", "a")
	c.until("nobody has it", func() bool { return c.observer.Snapshot().Pod("uid-a") == nil })
	c.pod("b", "n1", "two", false)
	c.until("the second is there, and the first has left", func() bool {
		return c.reported("two", "n1") && c.attachment("one", "n1") == nil
	})
}
