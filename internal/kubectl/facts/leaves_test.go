// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func withTicket(pod, cooperative bool) *World {
	granted := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}
	}
	attacher := "kube-controller-manager"
	objects := Objects{
		Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1", Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}, Status: corev1.NodeStatus{
			Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			VolumesAttached: []corev1.AttachedVolume{{Name: "kubernetes.io/csi/" + driver + "^v1"}},
		}}},
		Drivers: []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: driver}}},
		NodeDrivers: []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "n1"}}}}},
		PersistentVolumes: []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "pv"}, Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "v1"}}}}},
		Claims: []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim"},
			Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "pv", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}},
		Attachments: []*storagev1.VolumeAttachment{{ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: "v1"}, "n1"), UID: "va"},
			Spec:   storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")}},
			Status: storagev1.VolumeAttachmentStatus{Attached: true}}},
		Tickets: []*v1alpha1.VolumeTicket{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mine", UID: "mine"},
			Spec:   v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n1", Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
			Status: v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{granted(v1alpha1.TicketGranted), granted(v1alpha1.TicketSatisfied)}}}},
	}
	if !cooperative {
		attacher = v1alpha1.ControllerName
	}
	objects.Nodes[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: attacher, Time: &metav1.Time{Time: noon()}, Subresource: "status",
		FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:volumesAttached":{}}}`)}}
	if pod {
		objects.Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
			Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}}
	}
	return NewWorld(objects, noon())
}

func TestDrainPlanWithTickets(t *testing.T) {
	for then, empties := range map[v1alpha1.OnDrain]bool{v1alpha1.OnDrainStay: false, v1alpha1.OnDrainEnd: true} {
		w := withTicket(false, false)
		w.Tickets[0].Spec.OnDrain = then
		if plan := w.DrainPlan("n1"); plan.Empties() != empties || len(plan.Tickets) != 1 {
			t.Errorf("onDrain %s: empties %v, tickets %+v, %q", then, plan.Empties(), plan.Tickets, plan.Answer)
		}
	}
}
