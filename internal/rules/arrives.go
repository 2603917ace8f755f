// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Arrives says whether all that is left to be done about an exclusive volume is to bring it to who
// has it: somebody has it at a node that is ready, where it is not attached and reported yet, and it
// is attached to no other node, nor reported there. What a node that is dead last said is in use stays.
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
