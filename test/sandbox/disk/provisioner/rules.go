// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

func needsDisk(driver string, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || class.Provisioner != driver {
		return false
	}
	if handedTo(claim) != driver {
		return false
	}
	waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	return !waits || claim.Annotations[storagehelpers.AnnSelectedNode] != ""
}

func handedTo(claim *corev1.PersistentVolumeClaim) string {
	if p, ok := claim.Annotations[storagehelpers.AnnStorageProvisioner]; ok {
		return p
	}
	return claim.Annotations[storagehelpers.AnnBetaStorageProvisioner]
}

// A volume that is being deleted without our finalizer has no disk any more: others' finalizers hold it.
func reclaimable(driver string, pv *corev1.PersistentVolume) bool {
	if pv.DeletionTimestamp != nil && !slices.Contains(pv.Finalizers, storagehelpers.PVDeletionProtectionFinalizer) {
		return false
	}
	return pv.Status.Phase == corev1.VolumeReleased &&
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		pv.Annotations[storagehelpers.AnnDynamicallyProvisioned] == driver &&
		pv.Spec.CSI != nil && pv.Spec.CSI.Driver == driver
}

func diskName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

func createRequest(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *csi.CreateVolumeRequest {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	r := &csi.CreateVolumeRequest{
		Name: diskName(claim), Parameters: class.Parameters,
		CapacityRange: &csi.CapacityRange{RequiredBytes: size.Value()},
	}
	for _, mode := range claim.Spec.AccessModes {
		c := &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csiMode(mode)},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		}
		if block(claim) {
			c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		}
		r.VolumeCapabilities = append(r.VolumeCapabilities, c)
	}
	return r
}

func block(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// The driver has SINGLE_NODE_MULTI_WRITER.
func csiMode(m corev1.PersistentVolumeAccessMode) csi.VolumeCapability_AccessMode_Mode {
	switch m {
	case corev1.ReadWriteOncePod:
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case corev1.ReadOnlyMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case corev1.ReadWriteMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	}
	return csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
}

func volumeFor(driver string, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, disk *csi.Volume) *corev1.PersistentVolume {
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	mode := corev1.PersistentVolumeFilesystem
	if block(claim) {
		mode = corev1.PersistentVolumeBlock
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        diskName(claim),
			Annotations: map[string]string{storagehelpers.AnnDynamicallyProvisioned: driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   slices.Clone(claim.Spec.AccessModes),
			VolumeMode:                    &mode,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			MountOptions:                  slices.Clone(class.MountOptions),
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: driver, VolumeHandle: disk.GetVolumeId(), VolumeAttributes: disk.GetVolumeContext(),
			}},
		},
	}
	if mode == corev1.PersistentVolumeFilesystem {
		pv.Spec.CSI.FSType = "ext4"
	}
	if reclaim == corev1.PersistentVolumeReclaimDelete {
		pv.Finalizers = []string{storagehelpers.PVDeletionProtectionFinalizer}
	}
	return pv
}
