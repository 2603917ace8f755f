// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Gate says whether a pod must not be tried now, and has it woken when that changes, by the same
// looks that wake refused pods. A pod is gated also while the caches are not complete.
//
// The caller holds the scheduling queue's lock: Gate must not wake a pod, and a function that wakes
// pods must not hold mu.
func (w *Requeuer) Gate(pod *corev1.Pod, fact ledger.Pod) bool {
	w.mu.Lock()
	earlier, known := w.pods.all[pod.UID]
	// Gated until judged: a look at newer facts meanwhile then wakes it.
	entry := &waiting{pod: pod, fact: fact, gated: true}
	if known {
		entry.woken, entry.lifted = earlier.woken, earlier.lifted // passing the gate is not an attempt
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
		// Pods on their way to a first attempt are many, and need no looks.
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

// Gated is how many pods are kept from being tried.
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

// Enlist lists a pod that has a node, and needs no volumes for it: it can then be retried.
func (w *Requeuer) Enlist(pod *corev1.Pod, fact ledger.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods.all[pod.UID] == nil {
		w.enter(&waiting{pod: pod, fact: fact, reserved: true})
	}
}
