// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Gate says whether a pod must not be tried now, as also while the caches are incomplete. Looks wake it
// when that changes.
//
// The caller holds the scheduling queue's lock: Gate must not wake a pod, and functions that wake pods must
// not hold mu.
func (w *Requeuer) Gate(pod *corev1.Pod, fact ledger.Pod) bool {
	w.mu.Lock()
	earlier, known := w.pods.all[pod.UID]
	entry := &waiting{pod: pod, fact: fact, gated: true}
	if known {
		entry.woken, entry.lifted = earlier.woken, earlier.lifted // the gate is no attempt
	}
	attempt := w.enter(entry)
	w.mu.Unlock()
	gated := !attempt.Based || w.config.Gated(pod, attempt.Base, rules.PodRequest(attempt.Base, &fact))
	w.mu.Lock()
	defer w.mu.Unlock()
	entry = w.pods.all[pod.UID]
	switch {
	case entry == nil:
	case !gated && !known:
		// Pods before their first attempt are many, and need no looks.
		w.pods.drop(pod.UID)
	case gated:
		entry.gated, entry.woken = true, 0 // a look wakes it
	default:
		entry.gated = false
	}
	return gated
}

// Idle says whether a pod waits without a node, and whether it is gated.
func (w *Requeuer) Idle(uid types.UID) (idle, gated bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := w.pods.idle[uid]
	return entry != nil, entry != nil && entry.gated
}

// Gated counts the gated pods.
func (w *Requeuer) Gated() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, entry := range w.pods.all {
		if entry.gated {
			n++
		}
	}
	return n
}

// Enlist lists a pod that has a node, and needs no volumes for it, for a retry.
func (w *Requeuer) Enlist(pod *corev1.Pod, fact ledger.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods.all[pod.UID] == nil {
		w.enter(&waiting{pod: pod, fact: fact, reserved: true})
	}
}
