// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// FreesSlots says whether a request does not fit a node for want of slots, or for the SELinux
// labels of pods that are about to go, and would fit there once all that no pod and no
// ticket needs any more is detached from the node: volumes without users, and those whose
// users are all about to go. Who has evicted a pod waits for that, and evicting another one
// would be in vain.
//
// It costs the node's attachments.
func (a Arbiter) FreesSlots(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) bool {
	if !There(s, n) || a.Fit(s, r, n, now).Allowed() {
		return false
	}
	w := view{arbiter: a, snapshot: s, request: r, node: n, now: now, detached: true}
	return w.judge(w.fenced()).Allowed()
}
