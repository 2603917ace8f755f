// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The cost does not depend on the node's volumes.
func BenchmarkFilter(b *testing.B) {
	for _, volumes := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("volumes=%d", volumes), func(b *testing.B) {
			events := all(disk("data", ledger.AccessNode), one(slotsAt("n1", int32(volumes)+1)))
			for i := range volumes {
				claim := fmt.Sprintf("d%d", i)
				events = append(events, all(disk(claim, ledger.AccessNode),
					one(factOf(boundTo(podWith("pod-"+claim, claim), "n1")), attached(claim, "n1")))...)
			}
			r := newRig(b, events...)
			pod := podWith("p", "data")
			state, _, status := r.prefilter(pod)
			if !status.IsSuccess() {
				b.Fatal(status)
			}
			node := r.node("n1")
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if status := r.plugin.Filter(b.Context(), state, pod, node); status != nil {
					b.Fatal(status)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// The cost of one detach while many pods wait.
func BenchmarkLook(b *testing.B) {
	for _, pods := range []int{10, 1000} {
		b.Run(fmt.Sprintf("waiting=%d", pods), func(b *testing.B) {
			r := newStillRig(b, all(disk("data", ledger.AccessNode), disk("a", ledger.AccessNode), one(attached("a", "n1")))...)
			close(r.synced)
			w := r.plugin.core.requeuer
			for i := range pods {
				pod := podWith(fmt.Sprintf("p%d", i), "data")
				r.known(pod)
				w.Enter(pod, factOf(pod))
			}
			b.ReportAllocs()
			for slots := int32(1); b.Loop(); slots = 3 - slots {
				r.apply(slotsAt("n1", slots))
				w.Look(b.Context())
			}
		})
	}
}
