// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type facts struct{ ledger *ledger.Ledger }

func (f facts) Ledger() *ledger.Ledger            { return f.ledger }
func (f facts) Snapshot() ledger.Snapshot         { return f.ledger.Snapshot() }
func (f facts) HasSynced() bool                   { return true }
func (f facts) WaitForSync(context.Context) error { return nil }

// Another plugin may keep a woken pod from the queue: it is woken again, but not for ever.
func TestWokenUntilTried(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
	most := Retry{InitialDelay: 100 * time.Millisecond, MaxTries: 9, CacheLag: time.Second, MayBeBlocked: true}
	kept := Retry{InitialDelay: time.Second, MaxTries: 3, OnlyBlocked: true}
	for name, test := range map[string]struct {
		retry  Retry
		lifted bool                         // it is woken for a change of just now
		wake   func(w *Requeuer, woken int) // what a wake leads to
		total  int
	}{
		"not kept, and not tried":       {kept, false, func(*Requeuer, int) {}, 1},
		"not kept, and tried too early": {kept, true, func(w *Requeuer, _ int) { w.Enter(pod, ledger.Pod{}) }, 1},
		"kept away":                     {kept, false, func(w *Requeuer, _ int) { w.Keep(pod.UID) }, 1 + kept.MaxTries},
		"kept away, and tried": {kept, false, func(w *Requeuer, woken int) {
			w.Keep(pod.UID)
			when(woken == 2, func() { w.Enter(pod, ledger.Pod{}) })
		}, 2},
		"kept away for good":        {most, false, func(*Requeuer, int) {}, 1 + most.MaxTries},
		"tried at once":             {most, false, func(w *Requeuer, _ int) { w.Enter(pod, ledger.Pod{}) }, 1},
		"tried at the third":        {most, false, func(w *Requeuer, woken int) { when(woken == 3, func() { w.Enter(pod, ledger.Pod{}) }) }, 3},
		"let through, but not ours": {most, false, func(w *Requeuer, _ int) { w.Gate(pod, ledger.Pod{}) }, 1 + most.MaxTries},
		// At 20, 120, 320, 720 and 1,520 ms: the last attempt counts.
		"tried on others' old facts": {most, true, func(w *Requeuer, _ int) { w.Enter(pod, ledger.Pod{}) }, 5},
		"refused on others' old facts, and not kept": {most, true, func(w *Requeuer, _ int) {
			w.Enter(pod, ledger.Pod{})
			w.Rejected(pod.UID)
		}, 1},
		"refused before it was seen to be tried": {most, true, func(w *Requeuer, _ int) { w.Rejected(pod.UID) }, 1},
		"given a node":                           {most, false, func(w *Requeuer, _ int) { w.Reserved(pod.UID, true) }, 1},
		"gone":                                   {most, false, func(w *Requeuer, _ int) { w.Leave(pod.UID) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *Requeuer
				woken := 0
				w = New(Config{
					Facts: facts{ledger.New()},
					Gone:  func(*corev1.Pod) bool { return false },
					Retry: test.retry,
					Wake: func(context.Context, *corev1.Pod) {
						woken++
						test.wake(w, woken)
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.Run(ctx) }()
				w.Enter(pod, ledger.Pod{})
				if strings.HasSuffix(name, "not kept") {
					w.Rejected(pod.UID)
				}
				if test.lifted {
					w.pods.all[pod.UID].lifted = time.Now()
				}
				w.Retry(pod.UID)
				time.Sleep(10 * time.Minute) // in the bubble's time
				cancel()
				<-done
				if woken != test.total {
					t.Errorf("woken %d times, want %d", woken, test.total)
				}
			})
		})
	}
}

// Retried for a node that was not asked about, and anew only after a change lifted a refusal.
func TestRetryElsewhere(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
	synctest.Test(t, func(t *testing.T) {
		var w *Requeuer
		woken := 0
		w = New(Config{
			Facts: facts{ledger.New()},
			Gone:  func(*corev1.Pod) bool { return false },
			Wake: func(context.Context, *corev1.Pod) {
				woken++
				w.Enter(pod, ledger.Pod{})
				w.RetryElsewhere(pod.UID, 3)
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		w.Enter(pod, ledger.Pod{})
		w.RetryElsewhere(pod.UID, 3)
		time.Sleep(10 * time.Minute) // in the bubble's time
		cancel()
		<-done
		if woken != 3 {
			t.Errorf("woken %d times, want 3", woken)
		}
	})
}

// A pod may be gone when it is retried after its ticket's withdrawal.
func TestRetriesOfPodsThatAreGoneAreForgotten(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
	w := New(Config{Facts: facts{ledger.New()}, Gone: func(*corev1.Pod) bool { return true }, Wake: func(context.Context, *corev1.Pod) {}})
	defer w.retries.ShutDown()
	w.Enter(pod, ledger.Pod{})
	w.Sweep()
	w.Retry(pod.UID)
	if n := w.retries.NumRequeues(retry{uid: pod.UID}); n != 0 {
		t.Errorf("%d retries are remembered of a pod that is gone", n)
	}
}

func when(condition bool, do func()) {
	if condition {
		do()
	}
}
