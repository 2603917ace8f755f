// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The time begins once per node, at the first try; then the pod may have pods evicted.
func TestAwaitFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
		woken := 0
		w := New(Config{Facts: facts{ledger.New()}, Gone: func(*corev1.Pod) bool { return false }, Wake: func(context.Context, *corev1.Pod) { woken++ }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		defer func() { cancel(); <-done }()
		await := func(node ledger.NodeName, frees bool, left time.Duration) {
			t.Helper()
			w.Enter(pod, ledger.Pod{})
			until, waits := w.AwaitFreed(pod.UID, node, frees)
			if waits != (left > 0) || waits && time.Until(until) != left {
				t.Errorf("for %s it waits %t, for %s more, want %s", node, waits, time.Until(until), left)
			}
		}
		await("n1", false, FreedLasts) // the ledger may not have it yet
		time.Sleep(FreedLasts - time.Second)
		await("n1", true, time.Second)
		before := woken
		time.Sleep(time.Second)
		synctest.Wait()
		if woken != before+1 {
			t.Errorf("woken %d times when its time was over, want once", woken-before)
		}
		await("n1", true, 0)
		await("n2", true, FreedLasts)
		time.Sleep(freedSettles)
		await("n2", false, 0)
		await("n1", true, FreedLasts)
		time.Sleep(FreedLasts)
		w.Enter(pod, ledger.Pod{})
		w.Freed(pod.UID) // the slot came, and the pod was kept from it; others are evicted for it later
		await("n1", true, FreedLasts)
		if _, waits := w.AwaitFreed("unknown", "n1", true); waits {
			t.Error("a pod that nobody knows waits")
		}
	})
}

// The time at the present node wakes the pod, whatever came before.
func TestAwaitFreedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
		began, at := time.Now(), ledger.NodeName("n1")
		var w *Requeuer
		var woken []time.Duration
		try := func() {
			w.Enter(pod, ledger.Pod{})
			w.AwaitFreed(pod.UID, at, true)
		}
		w = New(Config{Facts: facts{ledger.New()}, Gone: func(*corev1.Pod) bool { return false }, Wake: func(context.Context, *corev1.Pod) {
			woken = append(woken, time.Since(began))
			try()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		try()
		w.Retry(pod.UID)
		time.Sleep(time.Minute)
		at = "n2"
		try()
		w.Retry(pod.UID)
		time.Sleep(FreedLasts + time.Second) // at the same moment either might come first
		cancel()
		<-done
		for _, want := range []time.Duration{freedSettles, time.Minute + freedSettles, FreedLasts + time.Minute} {
			if !slices.Contains(woken, want) {
				t.Errorf("woken after %v, want after %s, too", woken, want)
			}
		}
	})
}

// All questions of an attempt get the same answer. The next attempt has its own time.
func TestAwaitFreedInGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Config{Facts: facts{ledger.New()}, Gone: func(*corev1.Pod) bool { return false }, Wake: func(context.Context, *corev1.Pod) {}})
		defer w.retries.ShutDown()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
		attempt := func() { pod = pod.DeepCopy() } // as the scheduling queue does
		await := func(node ledger.NodeName, left time.Duration) {
			t.Helper()
			for range 3 { // placing, placing in a preemption, and afterwards
				w.Enter(pod, ledger.Pod{})
				until, waits := w.AwaitFreedInGroup(pod, node, true)
				if waits != (left > 0) || waits && time.Until(until) != left {
					t.Errorf("for %s it waits %t, for %s more, want %s", node, waits, time.Until(until), left)
				}
			}
		}
		await("n1", FreedLasts)
		time.Sleep(FreedLasts)
		attempt()
		await("n1", 0)
		attempt()
		await("n1", FreedLasts) // pods were evicted at the same node
		time.Sleep(FreedLasts)
		attempt()
		await("n1", 0)
		w.NothingEvicted(pod.UID)
		attempt()
		await("n1", 0)
		w.NothingEvicted(pod.UID)
		attempt()
		await("n2", FreedLasts)
		attempt()
		w.Freed(pod.UID)
		await("n1", FreedLasts)
		if _, waits := w.AwaitFreedInGroup(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "unknown"}}, "n1", true); waits {
			t.Error("a pod that nobody knows waits")
		}
	})
}
