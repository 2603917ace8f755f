// SPDX-License-Identifier: Apache-2.0

package decide

// PersistentVolume has the facts that decide on the attacher's finalizer on it.
type PersistentVolume struct {
	// Stamped: the attacher's finalizer is on.
	Stamped  bool
	Deleting bool
	// Orphaned: an in-tree volume that is not, or no longer, migrated to the
	// driver. Kubernetes' own plugin takes it back.
	Orphaned bool
	// Used: a VolumeAttachment of any driver names it.
	Used bool
}

// Unstamp says whether the attacher's finalizer must come off.
func (pv PersistentVolume) Unstamp() bool {
	return pv.Stamped && !pv.Used && (pv.Deleting || pv.Orphaned)
}
