// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

const annotationSelectedNode = "volume.kubernetes.io/selected-node"

// access is kube-controller-manager's (pkg/volume/util, IsMultiAttachAllowed): ReadOnlyMany beside
// ReadWriteOnce allows many nodes. A CSI driver's attacher may refuse the two together, and says so.
func access(modes []corev1.PersistentVolumeAccessMode) ledger.Access {
	has := func(m corev1.PersistentVolumeAccessMode) bool { return slices.Contains(modes, m) }
	switch {
	case has(corev1.ReadWriteOncePod):
		return ledger.AccessPod
	case has(corev1.ReadWriteMany), has(corev1.ReadOnlyMany):
		return ledger.AccessMany
	case has(corev1.ReadWriteOnce):
		return ledger.AccessNode
	}
	return ledger.AccessMany
}

// PersistentVolume makes a fact of a PersistentVolume, valid even with an error about its source.
func PersistentVolume(pv *corev1.PersistentVolume) (ledger.PersistentVolume, error) {
	csi, volume, err := volumeOfPV(pv)
	if err != nil {
		err = fmt.Errorf("PersistentVolume %s: %w", pv.Name, err)
	}
	fact := ledger.PersistentVolume{
		Name: pv.Name, UID: string(pv.UID), Version: pv.ResourceVersion,
		Volume:   volume,
		Access:   access(csi.Spec.AccessModes),
		Class:    class(pv.Annotations, &pv.Spec.StorageClassName),
		Affinity: nodeAffinity(csi.Spec.NodeAffinity),
		Strays:   pv.Annotations[v1alpha1.AnnotationStrays],
		Capacity: pv.Spec.Capacity.Storage().Value(),
		Deleting: pv.DeletionTimestamp != nil,
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		fact.Claim = ledger.ClaimKey{Namespace: ref.Namespace, Name: ref.Name}
		fact.ClaimUID = string(ref.UID)
	}
	return fact, err
}

// Claim makes a fact of a PersistentVolumeClaim.
func Claim(c *corev1.PersistentVolumeClaim) ledger.Claim {
	fact := ledger.Claim{
		Key: ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name},
		UID: string(c.UID), Version: c.ResourceVersion,
		PersistentVolume: c.Spec.VolumeName,
		Bound:            c.Status.Phase == corev1.ClaimBound,
		Lost:             c.Status.Phase == corev1.ClaimLost,
		Deleting:         c.DeletionTimestamp != nil,
		Class:            class(c.Annotations, c.Spec.StorageClassName),
		Access:           access(c.Spec.AccessModes),
		SelectedNode:     ledger.NodeName(c.Annotations[annotationSelectedNode]),
	}
	for _, owner := range c.OwnerReferences {
		if owner.Kind == "Pod" && owner.APIVersion == "v1" && owner.Controller != nil && *owner.Controller {
			fact.OwnerPod = string(owner.UID)
		}
	}
	return fact
}

// class is the StorageClass's name: the old annotation comes first (component-helpers/storage/volume,
// GetPersistentVolumeClaimClass).
func class(annotations map[string]string, name *string) string {
	if old, ok := annotations[corev1.BetaStorageClassAnnotation]; ok {
		return old
	}
	if name == nil {
		return ""
	}
	return *name
}

// StorageClass makes a fact; an in-tree provisioner gets its successor driver's name.
func StorageClass(c *storagev1.StorageClass) ledger.StorageClass {
	driver := c.Provisioner
	if csi, err := csitranslation.New().GetCSINameFromInTreeName(driver); err == nil && csi != "" {
		driver = csi
	}
	return ledger.StorageClass{
		Name: c.Name, Version: c.ResourceVersion, Driver: driver,
		WaitForFirst: c.VolumeBindingMode != nil && *c.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer,
	}
}

// Driver makes a fact; attachments are required by default (pkg/volume/csi/csi_plugin.go, skipAttach).
func Driver(d *storagev1.CSIDriver) ledger.Driver {
	return ledger.Driver{
		Name: d.Name, Version: d.ResourceVersion,
		AttachRequired: d.Spec.AttachRequired == nil || *d.Spec.AttachRequired,
		NeedsNode:      d.Spec.PreventPodSchedulingIfMissing != nil && *d.Spec.PreventPodSchedulingIfMissing,
		SELinuxMount:   d.Spec.SELinuxMount != nil && *d.Spec.SELinuxMount,
	}
}
