// SPDX-License-Identifier: Apache-2.0

package facts

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func podWith(id, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: id, UID: types.UID(id)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: id},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func one(o *Objects, node *corev1.Node, id string) {
	pv := "pv-" + id
	o.PersistentVolumes = append(o.PersistentVolumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: id}},
		ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: id, UID: types.UID(id)},
	}})
	o.Claims = append(o.Claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: id, UID: types.UID(id)},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
	pod := podWith(id, node.Name)
	pod.Status.Phase = corev1.PodRunning
	o.Pods = append(o.Pods, pod)
	name := ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: id}, ledger.NodeName(node.Name))
	o.Attachments = append(o.Attachments, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:   storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true}})
	unique := corev1.UniqueVolumeName("kubernetes.io/csi/" + driver + "^" + id)
	node.Status.VolumesInUse = append(node.Status.VolumesInUse, unique)
	node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: unique})
}
