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

// The scheduler evicts in an attempt only: a pod is tried when a change makes an eviction help.
func TestTriedWhenAnEvictionHelps(t *testing.T) {
	const lower, equal = -1, 0
	limit := func(n int32) func(*ledger.Ledger) ledger.Touched {
		return func(l *ledger.Ledger) ledger.Touched { return l.Apply(time.Now(), slots(n)) }
	}
	gone := func(l *ledger.Ledger) ledger.Touched { return l.Apply(time.Now(), ledger.PodGone{UID: "first"}) }
	for name, test := range map[string]struct {
		limit         int32 // of the node, where the pods first and second have a slot each
		first, second int32 // their priorities
		claims        int   // of the pod
		policy        corev1.PreemptionPolicy
		change        func(*ledger.Ledger) ledger.Touched
		woken         bool
	}{
		"the limit is raised":                         {0, lower, lower, 1, "", limit(1), true},
		"the limit is raised, and the pod has a slot": {0, lower, lower, 1, "", limit(3), true},
		"the limit is raised under pods of its rank":  {0, equal, equal, 1, "", limit(1), false},
		"it never evicts":                             {0, lower, lower, 1, corev1.PreemptNever, limit(1), false},
		"one slot comes free of two that it needs":    {2, equal, lower, 2, "", gone, true},
		"and pods of its rank have the other one":     {2, equal, equal, 2, "", gone, false},
		"an eviction helped before":                   {2, equal, lower, 1, "", limit(1), false},
		"its slot goes to a lower pod": {2, equal, equal, 1, "", func(l *ledger.Ledger) ledger.Touched {
			touched := gone(l)
			_, third := wants(l, "third")
			third.Node, third.Priority = "n1", lower
			again := l.Apply(time.Now(), third)
			touched.Nodes = append(touched.Nodes, again.Nodes...)
			return touched
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ledger.New()
				l.Apply(time.Now(), ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
				l.Apply(time.Now(), slots(test.limit))
				for name, priority := range map[string]int32{"first": test.first, "second": test.second} {
					_, p := wants(l, name)
					p.Node, p.Priority = "n1", priority
					l.Apply(time.Now(), p)
				}
				pod, fact := wants(l, "urgent")
				if test.policy != "" {
					pod.Spec.PreemptionPolicy = &test.policy
				}
				if test.claims > 1 {
					wants(l, "more")
					l.Apply(time.Now(), ledger.PodGone{UID: "more"})
					fact.Volumes = append(fact.Volumes, ledger.PodVolume{Name: "more", Claim: "more"})
					l.Apply(time.Now(), fact)
				}
				woken := false
				w := New(Config{
					Facts: facts{l}, Gone: func(*corev1.Pod) bool { return false },
					Wake: func(context.Context, *corev1.Pod) { woken = true },
				})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.Run(ctx) }()
				w.Enter(pod, fact)
				w.Rejected(pod.UID)
				synctest.Wait()
				w.Touch(test.change(l))
				time.Sleep(4 * time.Minute) // in the bubble's time
				cancel()
				<-done
				if woken != test.woken {
					t.Errorf("tried: %t, want %t", woken, test.woken)
				}
			})
		})
	}
}
