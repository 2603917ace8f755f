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

// freedSettles is how long after its nomination was first seen a pod waits in any case:
// the ledger may hear of the evictions later than the scheduler's cache.
const freedSettles = time.Second

// freed is where a pod waits for a slot that comes free, and since when.
type freed struct {
	node  ledger.NodeName
	since time.Time
}

// Freed notes that a pod waits for no slot to come free any more: it fits the node that it
// is nominated to, or is nominated to none. What is freed for it later has its own time.
func (w *Requeuer) Freed(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.pods.all[uid]; entry != nil {
		entry.freed = freed{}
	}
}

// AwaitFreed says whether a pod that is nominated to a node, and does not fit it, is to
// wait for a slot there, and until when at most: FreedLasts from when its nomination
// was first seen; the pod is woken then. frees says whether a slot does come free there.
// Once the time is over it says no, once: whoever then evicts for the pod anew frees
// another slot, which has its own time.
func (w *Requeuer) AwaitFreed(uid types.UID, n ledger.NodeName, frees bool) (until time.Time, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := w.pods.all[uid]
	if entry == nil {
		return time.Time{}, false
	}
	now := w.config.Now()
	if entry.freed.node != n {
		entry.freed = freed{n, now}
	}
	until = entry.freed.since.Add(FreedLasts)
	settled := entry.freed.since.Add(freedSettles)
	if now.Before(settled) || frees && now.Before(until) {
		// At each attempt anew: of several times the queue keeps the first only.
		if now.Before(settled) {
			w.retries.AddAfter(retry{uid: uid}, settled.Sub(now))
		}
		w.retries.AddAfter(retry{uid: uid, expires: true}, until.Sub(now))
		return until, true
	}
	entry.freed = freed{}
	return time.Time{}, false
}
