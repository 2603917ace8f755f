// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The end of a silent node's time wakes the pod without any event.
func TestTimeAloneWakesThePod(t *testing.T) {
	for _, noise := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, after := ledger.New(), 2*time.Minute
			l.Apply(time.Now(), ledger.Policy{Name: "p", Version: "1", Driver: driver, AfterUnreachable: &after})
			node := func(name ledger.NodeName, version string, ready ledger.Readiness) ledger.Event {
				return ledger.NodeState{Name: name, UID: string(name), Version: version, Ready: ready, Managed: true, Reporting: true}
			}
			for _, n := range []ledger.NodeName{"n1", "n2", "n3", "n4"} {
				l.Apply(time.Now(), node(n, "1", ledger.ReadyTrue))
				l.Apply(time.Now(), ledger.NodeDrivers{Node: n, Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: string(n), Limit: 2}}})
			}
			pod, fact := wants(l, "p")
			holder := fact
			holder.UID, holder.Name, holder.Node = "holder", "holder", "n1"
			l.Apply(time.Now(), holder)
			var woken []time.Duration
			began := time.Now()
			w := New(Config{
				Facts: facts{l},
				Gone:  func(*corev1.Pod) bool { return false },
				Wake:  func(context.Context, *corev1.Pod) { woken = append(woken, time.Since(began)) },
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); w.Run(ctx) }()
			w.Touch(l.Apply(time.Now(), node("n1", "2", ledger.ReadyUnknown)))
			w.Enter(pod, fact)
			time.Sleep(after - time.Second/2)
			if len(woken) > 0 {
				t.Errorf("woken after %v, while the time runs", woken)
			}
			time.Sleep(3 * time.Second / 4)
			if noise {
				w.Touch(l.Apply(time.Now(), node("n4", "2", ledger.ReadyUnknown)))
			}
			time.Sleep(time.Minute)
			cancel()
			<-done
			if len(woken) != 1 || woken[0] < after || woken[0] > after+2*time.Second {
				t.Errorf("woken after %v, want once, when %s are over", woken, after)
			}
		})
	}
}
