// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
)

// Call is the input of a call to the driver for an attachment, but for the node and the secrets.
type Call struct {
	Handle     string
	ReadOnly   bool
	Capability *csi.VolumeCapability
	// Context is the volume's attributes.
	Context map[string]string
	// Secret is where the secrets are; nil if none are needed.
	Secret *corev1.SecretReference
	// Migrated: the volume is an in-tree one in Kubernetes.
	Migrated bool
	// PersistentVolume is its name; empty for an inline volume.
	PersistentVolume string
}

// ListedHandle is the handle under which the driver lists the volume. Handles of migrated volumes
// leave out the part that only the node's ID tells.
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

// capability is the wanted access to the volume.
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
