// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// FreedLasts is how long nothing more is evicted for a pod while slots freed for it are being detached.
// After the unmount, a detach takes seconds to two minutes on cloud disks. A longer detach may never end.
const FreedLasts = 3 * time.Minute

// freedSettles is a pod's least wait after its nomination was first seen: the ledger may hear of the
// evictions after the scheduler's cache.
const freedSettles = time.Second

type freed struct {
	node  ledger.NodeName
	since time.Time
	// over is the pod object of the attempt in which the time ended; nil: none, or nothing was
	// evicted in it.
	over *corev1.Pod
}

// Freed notes that a pod no longer waits for a freed slot: it fits its nominated node, or has none. A later
// slot has its own time.
func (w *Requeuer) Freed(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.pods.all[uid]; entry != nil {
		entry.freed = freed{}
	}
}

// AwaitFreed says whether a pod waits for a slot at its nominated node, and until when: FreedLasts after
// the first sight of its nomination. The pod is woken then. frees says whether a slot comes free there.
// After that time it says no once: a later eviction has its own time.
func (w *Requeuer) AwaitFreed(uid types.UID, n ledger.NodeName, frees bool) (until time.Time, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := w.pods.all[uid]
	if entry == nil {
		return time.Time{}, false
	}
	until, waits = w.awaitFreed(entry, n, frees)
	if !waits {
		entry.freed = freed{}
	}
	return until, waits
}

// AwaitFreedInGroup is AwaitFreed for a pod of a group: repeated questions in an attempt, identified by its
// pod object, get the same answer. The next attempt has its own time, since pods may have been evicted in
// between, unless NothingEvicted denies it.
func (w *Requeuer) AwaitFreedInGroup(attempt *corev1.Pod, n ledger.NodeName, frees bool) (until time.Time, waits bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := w.pods.all[attempt.UID]
	if entry == nil {
		return time.Time{}, false
	}
	switch over := entry.freed.over; {
	case over == nil:
	case over != attempt:
		entry.freed = freed{}
	case entry.freed.node == n:
		return time.Time{}, false
	}
	until, waits = w.awaitFreed(entry, n, frees)
	if !waits {
		entry.freed.over = attempt
	}
	return until, waits
}

// NothingEvicted notes an attempt without an eviction: a pod of a group does not wait anew while its
// nomination stays the same.
func (w *Requeuer) NothingEvicted(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.pods.all[uid]; entry != nil {
		entry.freed.over = nil
	}
}

// awaitFreed does not note the end of the time; mu is held.
func (w *Requeuer) awaitFreed(entry *waiting, n ledger.NodeName, frees bool) (until time.Time, waits bool) {
	uid, now := entry.pod.UID, w.config.Now()
	if entry.freed.node != n {
		entry.freed = freed{node: n, since: now}
	}
	until = entry.freed.since.Add(FreedLasts)
	settled := entry.freed.since.Add(freedSettles)
	if now.Before(settled) || frees && now.Before(until) {
		// The queue keeps only the first of several times.
		if now.Before(settled) {
			w.retries.AddAfter(retry{uid: uid}, settled.Sub(now))
		}
		w.retries.AddAfter(retry{uid: uid, expires: true}, until.Sub(now))
		return until, true
	}
	return time.Time{}, false
}
