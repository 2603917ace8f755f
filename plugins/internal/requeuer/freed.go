// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// FreedLasts is how long nothing more is evicted for a pod while the slots that its
// preemption freed are being detached. A detach takes seconds to two minutes (cloud
// disks), after the kubelet's unmount; one that takes longer may never end, and another
// node may do.
const FreedLasts = 3 * time.Minute

// freed is where a pod waits for a slot that comes free, and for how long.
type freed struct {
	node  ledger.NodeName
	until time.Time
}

// AwaitFreed notes that a pod waits for a slot that comes free at a node, and says
// until when, FreedLasts from when that was first noted; the pod is woken then. Once
// that time is over it says so, once: whoever then evicts for the pod anew frees
// another slot, which has its own time.
func (w *Requeuer) AwaitFreed(uid types.UID, n ledger.NodeName) (until time.Time, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := w.pods.all[uid]
	if entry == nil {
		return time.Time{}, false
	}
	now := w.config.Now()
	if entry.freed.node != n {
		entry.freed = freed{n, now.Add(FreedLasts)}
		w.retries.AddAfter(retry{uid: uid}, FreedLasts)
	}
	if now.Before(entry.freed.until) {
		return entry.freed.until, true
	}
	entry.freed = freed{}
	return time.Time{}, false
}
