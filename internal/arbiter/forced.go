// SPDX-License-Identifier: Apache-2.0

package arbiter

// Forces says whether a step lets a volume go without its kubelet's word that it
// is not in use: the end of its VolumeAttachment, or for a volume that has none, of
// its entry in volumesAttached.
func (s Step) Forces() bool {
	return s.Rule != "" && (s.Do == DeleteAttachment || s.Do == Unreport && s.Volume.NoAttach())
}
