// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Arrives says whether all that is left to be done about an exclusive volume is to bring it to who
// has it: somebody has it at a node, and it is attached to no other, nor reported there. What a node
// that is dead last said is in use stays.
func Arrives(s ledger.Snapshot, v *ledger.Volume) bool {
	if v == nil || !exclusive(v.Access) {
		return false
	}
	wanted := false
	for i := range v.NodeVolumes {
		place := &v.NodeVolumes[i]
		switch {
		case slices.ContainsFunc(place.Users, func(u ledger.User) bool { return standingOf(s, u) == living }):
			wanted = true
		case place.HasAttachments() || place.Reported:
			return false
		}
	}
	return wanted
}
