// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
)

// Call is a driver call's input, without the node and the secrets.
type Call struct {
	Handle     string
	ReadOnly   bool
	Capability *csi.VolumeCapability
	// Context is the volume attributes.
	Context map[string]string
	// Secret is the secrets' place; nil: none needed.
	Secret *corev1.SecretReference
	// Migrated: the volume is in-tree in Kubernetes.
	Migrated bool
	// PersistentVolume is the name; empty for an inline volume.
	PersistentVolume string
}

// ListedHandle is the volume's handle in the driver's list. Migrated volumes' handles lack a part that only
// the node's ID tells.
func (r *Reader) ListedHandle(c Call, nodeID string) (string, error) {
	if !c.Migrated {
		return c.Handle, nil
	}
	handle, err := csitranslation.New().RepairVolumeHandle(r.Driver, c.Handle, nodeID)
	if err != nil {
		return "", fmt.Errorf("complete the handle %q with node ID %q: %w", c.Handle, nodeID, err)
	}
	return handle, nil
}

func (r *Reader) capability(spec *corev1.PersistentVolumeSpec) (*csi.VolumeCapability, error) {
	mode, err := accessmodes.ToCSIAccessMode(spec.AccessModes, r.SingleNodeMultiWriter)
	if err != nil {
		return nil, fmt.Errorf("access modes: %w", err)
	}
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if spec.VolumeMode != nil && *spec.VolumeMode == corev1.PersistentVolumeBlock {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return capability, nil
	}
	fsType := spec.CSI.FSType
	if fsType == "" {
		fsType = r.DefaultFSType
	}
	capability.AccessType = &csi.VolumeCapability_Mount{
		Mount: &csi.VolumeCapability_MountVolume{FsType: fsType, MountFlags: spec.MountOptions},
	}
	return capability, nil
}
