// SPDX-License-Identifier: Apache-2.0

package waker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// facts are complete, and never change.
type facts struct{ ledger *ledger.Ledger }

func (f facts) Ledger() *ledger.Ledger            { return f.ledger }
func (f facts) Snapshot() ledger.Snapshot         { return f.ledger.Snapshot() }
func (f facts) HasSynced() bool                   { return true }
func (f facts) WaitForSync(context.Context) error { return nil }

// A pod that is woken while another plugin keeps it from the queue is woken
// again, until it is tried; and not for ever.
func TestWokenUntilTried(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
	for name, test := range map[string]struct {
		lifted bool                      // it is woken for a change of just now
		wake   func(w *Waker, woken int) // what a wake leads to
		total  int
	}{
		"kept away for good":        {false, func(*Waker, int) {}, 1 + insistMost},
		"tried at once":             {false, func(w *Waker, _ int) { w.Enter(pod, ledger.Pod{}) }, 1},
		"tried at the third":        {false, func(w *Waker, woken int) { when(woken == 3, func() { w.Enter(pod, ledger.Pod{}) }) }, 3},
		"let through, but not ours": {false, func(w *Waker, _ int) { w.Gate(pod, ledger.Pod{}) }, 1 + insistMost},
		// At 20, 120, 320, 720 and 1,520 ms: the last one counts.
		"tried on others' old facts": {true, func(w *Waker, _ int) { w.Enter(pod, ledger.Pod{}) }, 5},
		"given a node":               {false, func(w *Waker, _ int) { w.Reserved(pod.UID, true) }, 1},
		"gone":                       {false, func(w *Waker, _ int) { w.Leave(pod.UID) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *Waker
				woken := 0
				w = New(Config{
					Facts: facts{ledger.New()},
					Gone:  func(*corev1.Pod) bool { return false },
					Wake: func(context.Context, *corev1.Pod) {
						woken++
						test.wake(w, woken)
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.Run(ctx) }()
				w.Enter(pod, ledger.Pod{})
				if test.lifted {
					w.pods.all[pod.UID].lifted = time.Now()
				}
				w.Retry(pod.UID)
				time.Sleep(10 * time.Minute) // of the bubble's time: it takes none
				cancel()
				<-done
				if woken != test.total {
					t.Errorf("woken %d times, want %d", woken, test.total)
				}
			})
		})
	}
}

func when(condition bool, do func()) {
	if condition {
		do()
	}
}
