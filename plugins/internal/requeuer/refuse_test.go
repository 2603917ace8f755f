// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A pod that the controller refused is tried elsewhere at once, and at each node again
// as soon as that is not left out any more, whatever it was tried for meanwhile.
func TestRefusedNodeIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
		began := time.Now()
		var w *Requeuer
		var attempts []string
		try := func() {
			attempt := fmt.Sprintf("%s without", time.Since(began))
			for _, refusal := range w.Enter(pod, ledger.Pod{}).Refused {
				attempt += " " + string(refusal.Node)
			}
			attempts = append(attempts, attempt)
		}
		w = New(Config{
			Facts: facts{ledger.New()},
			Gone:  func(*corev1.Pod) bool { return false },
			Wake:  func(context.Context, *corev1.Pod) { try() },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		try()
		w.Refuse(pod.UID, "n1", "no free slot")
		w.Retry(pod.UID)
		time.Sleep(2 * time.Second) // of the bubble's time: it takes none
		w.Refuse(pod.UID, "n2", "no free slot")
		w.Retry(pod.UID)
		time.Sleep(10 * time.Minute)
		cancel()
		<-done
		want := []string{"0s without", "20ms without n1", "2.04s without n1 n2", "5s without n2", "7s without"}
		if !slices.Equal(attempts, want) {
			t.Errorf("tried %v, want %v", attempts, want)
		}
	})
}

// A pod that node after node refuses is tried as seldom as one that a single node refuses
// again and again, and at each of the nodes in turn, in the order of their scores.
func TestRefusedEverywhere(t *testing.T) {
	for _, nodes := range []int{1, 2, 20} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
				began := time.Now()
				var w *Requeuer
				attempts, last := 0, map[ledger.NodeName]time.Duration{}
				try := func() {
					attempts++
					refused := w.Enter(pod, ledger.Pod{}).Refused
					for i := range nodes {
						n := ledger.NodeName(fmt.Sprint("n", i))
						if !slices.ContainsFunc(refused, func(r Refusal) bool { return r.Node == n }) {
							last[n] = time.Since(began)
							w.Refuse(pod.UID, n, "not managed")
							w.Retry(pod.UID)
							return
						}
					}
				}
				w = New(Config{
					Facts: facts{ledger.New()},
					Gone:  func(*corev1.Pod) bool { return false },
					Wake:  func(context.Context, *corev1.Pod) { try() },
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.Run(ctx) }()
				try()
				time.Sleep(time.Hour) // of the bubble's time: it takes none
				cancel()
				<-done
				if attempts > 400 {
					t.Errorf("tried %d times in an hour, want one every ten seconds at most", attempts)
				}
				for i := range nodes {
					if n := ledger.NodeName(fmt.Sprint("n", i)); last[n] < time.Hour-5*time.Minute {
						t.Errorf("tried at %s last after %s", n, last[n])
					}
				}
			})
		})
	}
}
