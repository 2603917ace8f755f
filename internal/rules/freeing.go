// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// FreesSlots says whether a request does not fit a node for want of slots or for SELinux labels, and would
// fit after the detach of all volumes there without users or with ending users only. After an eviction a
// scheduler waits for that: another eviction would be in vain.
//
// It costs the node's attachments.
func (a Arbiter) FreesSlots(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) bool {
	if !There(s, n) || a.Fit(s, r, n, now).Allowed() {
		return false
	}
	w := view{arbiter: a, snapshot: s, request: r, node: n, now: now, detached: true}
	return w.judge(w.fenced()).Allowed()
}
