// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Arrives says whether the only work left for an exclusive volume is to bring it to its user: a Ready node
// has a user, the volume is not yet attached and reported there, and it is neither attached to another node
// nor reported at one. Volumes in the last volumesInUse of a dead node stay.
func Arrives(s ledger.Snapshot, v *ledger.Volume) bool {
	if v == nil || !exclusive(v.Access) {
		return false
	}
	awaited := false
	for i := range v.NodeVolumes {
		place := &v.NodeVolumes[i]
		switch va := place.Own(); {
		case !ready(s.Node(place.Node)) || !slices.ContainsFunc(place.Users, func(u ledger.User) bool { return claimStateOf(s, u) == active }):
			if place.HasAttachments() || place.Reported {
				return false
			}
		case va == nil || !va.Attached || !place.Reported:
			awaited = true
		}
	}
	return awaited
}
