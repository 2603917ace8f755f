// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// UnderWay returns whether an attach or detach of a volume at a node keeps one of the
// workers that a policy gives its driver, and for how long it does so at most if nothing
// changes: 0 for as long as it is under way. One that the driver has refused keeps none:
// its attacher tries again after pauses of its own. A detach that the driver does not
// answer keeps one for a minute: else a few that never end would stop the driver
// everywhere.
func UnderWay(s ledger.Snapshot, place *ledger.NodeVolume, now time.Time) (bool, time.Duration) {
	va := place.Canonical()
	switch {
	case va == nil:
		return false, 0
	case va.Deleting:
		since, _ := s.Leaving(place)
		left := detachPatience - now.Sub(since)
		return va.DetachError.IsZero() && left > 0, max(left, 0)
	}
	return !va.Attached && va.AttachError.IsZero(), 0
}

// Answers returns whether a node is Ready, so that its attaches and detaches can be
// expected to end. Those at other nodes never keep one at such a node waiting.
func Answers(n *ledger.Node) bool { return ready(n) }
