// SPDX-License-Identifier: Apache-2.0

package ledger

import "iter"

// UnderWay lists, unordered, volumes at nodes whose attachment (Canonical) awaits an attach or detach
// without a reported failure.
func (s Snapshot) UnderWay() iter.Seq2[VolumeID, *VolumeOnNode] {
	return func(yield func(VolumeID, *VolumeOnNode) bool) {
		for r := range s.facts.attachments.marked() {
			place := s.Volume(r.at()).OnNode(r.to.node)
			if place != nil && place.first == r && !yield(r.at(), place) {
				return
			}
		}
	}
}

// UnderWayOf counts these by driver.
func (s Snapshot) UnderWayOf() map[string]int {
	count := map[string]int{}
	for r := range s.facts.attachments.marked() {
		count[r.to.driver]++
	}
	return count
}

// underWay says whether an attacher has still to attach or to detach an attachment, without a reported
// failure.
func (r *attachmentRecord) underWay() bool {
	if r.deleting {
		return r.odd == nil || r.odd.detachError.IsZero()
	}
	return !r.attached && (r.odd == nil || r.odd.attachError.IsZero())
}
