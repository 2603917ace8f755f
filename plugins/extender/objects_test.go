// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const (
	driver    = "disk.example.com"
	scheduler = "system:kube-scheduler" // the name in a scheduler's certificate
)

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func csiNode(name string, slots int32) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &slots}}}},
	}
}

func podWith(name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
	}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name:         claim,
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
		})
	}
	return pod
}

func boundTo(pod *corev1.Pod, node string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	return pod
}

func (r *rig) disk(claims ...string) {
	for _, claim := range claims {
		r.claim(claim, true)
		r.volume(claim)
	}
}

func (r *rig) volume(claim string) {
	r.Put("persistentvolumes", &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim, UID: types.UID("pv-" + claim)},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: claim}},
			ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: claim, UID: types.UID("claim-" + claim)},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	})
}

func (r *rig) mustBeThere() {
	yes := true
	r.Put("csidrivers", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &yes}})
}

func (r *rig) oneByOne(claim string) {
	var pv corev1.PersistentVolume
	r.Get("persistentvolumes", "", "pv-"+claim, &pv)
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	r.Put("persistentvolumes", &pv)
}

func (r *rig) claim(name string, bound bool) {
	class := "late"
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("claim-" + name)},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	if bound {
		claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		claim.Spec.VolumeName, claim.Status.Phase = "pv-"+name, corev1.ClaimBound
	}
	late := storagev1.VolumeBindingWaitForFirstConsumer
	r.Put("storageclasses", &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: driver, VolumeBindingMode: &late})
	r.Put("persistentvolumeclaims", claim)
}

func (r *rig) attach(claim, node string) {
	pv := "pv-" + claim
	r.Put("volumeattachments", &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachmentName(claim, node)},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	})
}

func (r *rig) detach(claim, node string) {
	r.Remove("volumeattachments", "", attachmentName(claim, node))
}

func attachmentName(claim, node string) string {
	return ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: claim}, ledger.NodeName(node))
}

func (r *rig) fill(nodes ...string) {
	for _, node := range nodes {
		for _, claim := range []string{"a-" + node, "b-" + node} {
			r.disk(claim)
			r.attach(claim, node)
		}
	}
}
