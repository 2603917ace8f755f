// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/moorage-dev/moorage/internal/ledger"

// Forces says whether a step frees a volume without its kubelet's word that it is unused: it ends the
// VolumeAttachment, or for a volume without one, the entry in volumesAttached.
func (s Step) Forces() bool {
	return s.Rule != "" && (s.Do == DeleteAttachment || s.Do == Unreport && s.Volume.NoAttach())
}

// Taken says whether a forced detach in the hold was carried out: the VolumeAttachment is gone or being
// deleted; without a VolumeAttachment, the node's volumesAttached omits the volume.
func Taken(v *ledger.Volume, f ledger.Fence) bool {
	place := v.NodeVolume(f.Node)
	switch {
	case f.Rule == "":
		return false
	case v.ID.NoAttach():
		return place == nil || !place.Reported
	}
	va := place.Own()
	return f.Attachment != "" && (va == nil || va.UID != f.Attachment || va.Deleting)
}
