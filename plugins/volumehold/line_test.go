// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// fullNodes is a world in which n1 is the only node of the driver and its one slot is taken.
func fullNodes(claims ...string) []ledger.Event {
	events := all(disk("a", ledger.AccessNode), one(slotsAt("n1", 1), attached("a", "n1"), ledger.NodeDriversGone{Node: "n2"}, ledger.NodeDriversGone{Node: "n3"}))
	for _, claim := range claims {
		events = append(events, disk(claim, ledger.AccessNode)...)
	}
	return events
}

// A pod that is not let into the queue, since its PodGroup is incomplete, is not given the
// turn of one that can use the slot, though it would be before it in line.
func TestGatedPodsTakeNoTurn(t *testing.T) {
	r := newStillRig(t, fullNodes("d1", "d2")...)
	close(r.synced)
	r.putGroup("g", 2, 600)
	gated, pod := inGroup(podWith("gated", "d1"), "g", 1), podWith("p", "d2")
	pod.CreationTimestamp = metav1.Unix(2, 0)
	r.known(gated, pod)
	if r.plugin.PreEnqueue(t.Context(), gated).IsSuccess() {
		t.Fatal("a group of which a pod is missing is tried")
	}
	if r.filter(pod, "n1").IsSuccess() {
		t.Fatal("n1 is not full")
	}
	r.apply(detached("a", "n1"))
	r.plugin.core.requeuer.Look(t.Context())
	if got := r.queue.names(); !slices.Equal(got, []string{"p"}) {
		t.Errorf("woken are %v, want the pod that may be tried", got)
	}
}
