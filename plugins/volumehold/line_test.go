// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/plugins/internal/requeuer"
)

func fullNodes(claims ...string) []ledger.Event {
	events := all(disk("a", ledger.AccessNode), one(slotsAt("n1", 1), attached("a", "n1"), ledger.NodeDriversGone{Node: "n2"}, ledger.NodeDriversGone{Node: "n3"}))
	for _, claim := range claims {
		events = append(events, disk(claim, ledger.AccessNode)...)
	}
	return events
}

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

func TestOpenedWhileThePodHadANode(t *testing.T) {
	r := newStillRig(t, all(fullNodes("d1"), one(slotsAt("n2", 1)))...)
	close(r.synced)
	r.putGroup("g", 1, 600)
	pod, other := inGroup(podWith("p", "d1"), "g", 1), podWith("other", "no-such-claim")
	r.known(pod, other)
	c := r.reserve(pod, "n2")
	r.prefilter(other)
	r.apply(detached("a", "n1"))
	r.plugin.core.requeuer.Look(t.Context())

	groups := r.plugin.core.groups
	groups.mu.Lock() // which stops Unreserve after the end of the reservation
	over := make(chan struct{})
	go func() { defer close(over); c.unreserve() }()
	eventually(t, "the reservation to end", func() bool { return r.Snapshot().Volume(volume("d1")).OnNode("n2") == nil })
	r.plugin.core.requeuer.Look(t.Context())
	groups.mu.Unlock()
	<-over
	r.plugin.core.requeuer.Look(t.Context())
	if got := r.queue.names(); !slices.Equal(got, []string{"p"}) {
		t.Errorf("woken are %v: n1 has become free since the pod's snapshot", got)
	}
}

func TestDeletedPodsTakeNoTurn(t *testing.T) {
	r := newStillRig(t, fullNodes("d1", "d2")...)
	close(r.synced)
	ends, pod := terminating(podWith("ends", "d1")), podWith("p", "d2")
	ends.Finalizers = []string{"example.com/kept"}
	ends.CreationTimestamp, pod.CreationTimestamp = metav1.Unix(1, 0), metav1.Unix(2, 0)
	r.known(ends, pod)
	if r.filter(ends, "n1").IsSuccess() || r.filter(pod, "n1").IsSuccess() {
		t.Fatal("n1 is not full")
	}
	r.apply(detached("a", "n1"))
	r.plugin.core.requeuer.Look(t.Context())
	if got := r.queue.names(); !slices.Equal(got, []string{"p"}) {
		t.Errorf("woken are %v, want the pod that lives", got)
	}
}

func TestNextFreedSlotHasItsOwnTime(t *testing.T) {
	r := newStillRig(t, fullNodes("d1")...)
	close(r.synced)
	pod := podWith("p", "d1")
	r.known(pod)
	r.prefilter(pod) // a pod has no nominated node in its first attempt
	state, _, _ := r.prefilter(pod)
	if _, waits := r.plugin.core.requeuer.AwaitFreed(pod.UID, "n1", true); !waits {
		t.Fatal("it does not wait for the first slot")
	}
	r.plugin.PostFilter(t.Context(), state, pod, nil) // it is nominated to no node
	r.later.Store(int64(requeuer.FreedLasts))
	r.prefilter(pod)
	if _, waits := r.plugin.core.requeuer.AwaitFreed(pod.UID, "n1", true); !waits {
		t.Error("it does not wait for the second slot, and others are evicted for it")
	}
}
