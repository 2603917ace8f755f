// SPDX-License-Identifier: Apache-2.0

package decide

// PersistentVolume has the facts that decide on its attacher's finalizer.
type PersistentVolume struct {
	// Stamped: the attacher's finalizer is on.
	Stamped  bool
	Deleting bool
	// Orphaned: an in-tree volume, not migrated to the driver. Kubernetes' own plugin has it.
	Orphaned bool
	// Used: a VolumeAttachment of any driver names it.
	Used bool
}

// Unstamp says whether the attacher's finalizer must come off.
func (pv PersistentVolume) Unstamp() bool {
	return pv.Stamped && !pv.Used && (pv.Deleting || pv.Orphaned)
}
