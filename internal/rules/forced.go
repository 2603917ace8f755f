// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/moorage-dev/moorage/internal/ledger"

// Forces says whether a step lets a volume go without its kubelet's word that it
// is not in use: the end of its VolumeAttachment, or for a volume that has none, of
// its entry in volumesAttached.
func (s Step) Forces() bool {
	return s.Rule != "" && (s.Do == DeleteAttachment || s.Do == Unreport && s.Volume.NoAttach())
}

// Taken says whether a detach by force of which a hold tells was carried out: the
// VolumeAttachment is gone or being deleted; of a volume that has none, the node's
// volumesAttached does not name it.
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
