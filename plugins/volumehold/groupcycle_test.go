// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/plugins/internal/requeuer"
)

type groupPods struct {
	fwk.PodGroupInfo
	pods []*corev1.Pod
}

func (g groupPods) GetUnscheduledPods() []*corev1.Pod { return g.pods }

type nominating struct {
	fwk.Handle
	pods map[string]*corev1.Pod // by node
}

func (n nominating) NominatedPodsForNode(node string) []fwk.PodInfo {
	if n.pods[node] == nil {
		return nil
	}
	info, _ := framework.NewPodInfo(n.pods[node])
	return []fwk.PodInfo{info}
}

func (r *rig) groupCycle() *framework.CycleState { return framework.NewCycleState() }

func (r *rig) filterIn(cycle fwk.PodGroupCycleState, pod *corev1.Pod, node string) (fwk.CycleState, *fwk.Status) {
	r.t.Helper()
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(cycle)
	if _, status, _ := r.RunPreFilterPlugins(r.t.Context(), state, pod); !status.IsSuccess() {
		r.t.Fatal(status)
	}
	return state, r.RunFilterPlugins(r.t.Context(), state, pod, r.node(node))
}

func (r *rig) postFilter(cycle fwk.PodGroupCycleState, pods ...*corev1.Pod) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	r.t.Helper()
	return r.plugin.PodGroupPostFilter(r.t.Context(), cycle, groupPods{pods: pods}, nil)
}

// After the wait the gang may evict again in that cycle; it does not wait anew if that fails.
func TestGroupNoLongerWaitsForASlot(t *testing.T) {
	r := newRig(t, all(disk("gone", ledger.AccessNode), disk("victim", ledger.AccessNode), disk("data", ledger.AccessNode),
		one(slotsAt("n1", 1), slotsAt("n2", 1), attached("gone", "n1"), attached("victim", "n2")))...)
	pod, victim := podWith("p", "data"), boundTo(podWith("victim", "victim"), "n2")
	r.known(pod, victim)
	r.plugin.handle = nominating{r.plugin.handle, map[string]*corev1.Pod{"n1": pod}}

	const waiting = "nothing more is evicted"
	cycle := func(waits bool) {
		t.Helper()
		pod = pod.DeepCopy() // as the scheduling queue does
		first := r.groupCycle()
		r.filterIn(first, pod, "n1")
		for range 2 { // a preemption for the group, at two placements
			if _, status := r.filterIn(r.groupCycle(), pod, "n2"); strings.Contains(status.Message(), waiting) != waits || status.IsSuccess() == waits {
				t.Errorf("Filter says %v, want that it waits: %t", status, waits)
			}
		}
		result, status := r.postFilter(first, pod)
		kept := status.IsSuccess() && result.NominatingInfos[types.NamespacedName{Namespace: "shop", Name: "p"}].NominatedNodeName == "n1"
		if kept != waits || strings.Contains(status.Message(), waiting) != waits {
			t.Errorf("PodGroupPostFilter says %v, want that it waits: %t", status, waits)
		}
	}
	cycle(true)
	r.later.Store(int64(requeuer.FreedLasts))
	cycle(false)
	cycle(false)

	// After a preemption kube-scheduler calls no plugin. The next slot has its own time.
	pod = pod.DeepCopy()
	if _, status := r.filterIn(r.groupCycle(), pod, "n2"); !status.IsSuccess() {
		t.Fatal(status)
	}
	cycle(true)
}

// Otherwise two members could wait in turn forever.
func TestGroupWaitsNoLongerThanItsMembers(t *testing.T) {
	r := newRig(t, all(disk("gone1", ledger.AccessNode), disk("gone2", ledger.AccessNode), disk("a", ledger.AccessNode), disk("b", ledger.AccessNode),
		one(slotsAt("n1", 1), slotsAt("n2", 1), attached("gone1", "n1"), attached("gone2", "n2")))...)
	a, b := podWith("a", "a"), podWith("b", "b")
	r.known(a, b)
	nominated := nominating{r.plugin.handle, map[string]*corev1.Pod{"n1": a}}
	r.plugin.handle = nominated
	waits := func() bool {
		a, b = a.DeepCopy(), b.DeepCopy()
		cycle := r.groupCycle()
		r.filterIn(cycle, a, "n1")
		r.filterIn(cycle, b, "n2")
		_, status := r.postFilter(cycle, a, b)
		return status.IsSuccess()
	}
	if !waits() {
		t.Fatal("it does not wait for the first slot")
	}
	r.later.Store(int64(requeuer.FreedLasts) / 2)
	nominated.pods["n2"] = b
	if !waits() {
		t.Fatal("it does not wait for the second slot")
	}
	r.later.Store(int64(requeuer.FreedLasts) + 1)
	if !waits() {
		t.Error("it no longer waits for the second slot, and evicts for both")
	}
	r.later.Store(int64(requeuer.FreedLasts) * 8 / 5)
	if waits() {
		t.Error("it waits for the first slot anew")
	}
}

// As PostFilter does for one pod. A nomination's end changes nothing in the ledger: the pod is tried again.
func TestGroupThatHasNoRoom(t *testing.T) {
	holder := boundTo(podWith("holder", "held"), "n2")
	r := newRigBeside(t, nil, holder)
	r.apply(all(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), disk("held", ledger.AccessNode), disk("other", ledger.AccessNode),
		one(slotsAt("n1", 1), slotsAt("n2", 1), attached("held", "n2")))...)
	placed, stuck, holds, shares, other := podWith("placed", "a"), podWith("stuck", "b"), podWith("holds", "held"), podWith("shares", "held"), podWith("other", "other")
	r.known(placed, stuck, holds, shares, other, holder)

	cycle := r.groupCycle()
	if _, status := r.filterIn(cycle, placed, "n2"); status.IsSuccess() {
		t.Fatal("n2 has no free slot")
	}
	state, status := r.filterIn(cycle, placed, "n1")
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	info, _ := framework.NewPodInfo(other)
	stuckState, _ := r.filterIn(cycle, stuck, "n2")
	r.RunPreFilterExtensionAddPod(t.Context(), stuckState, stuck, info, r.node("n1"))
	if status := r.RunFilterPlugins(t.Context(), stuckState, stuck, r.node("n1")); status.IsSuccess() {
		t.Fatal("n1 has room beside a nominated pod")
	}
	if status := r.RunReservePluginsReserve(t.Context(), state, placed, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	r.filterIn(cycle, holds, "n2")
	r.filterIn(cycle, shares, "n2")
	r.RunReservePluginsUnreserve(t.Context(), state, placed, "n1")
	r.queue.reset()
	_, status = r.postFilter(cycle, placed, stuck, holds, shares)

	if status.Code() != fwk.Unschedulable || len(status.Reasons()) != 1 || !strings.HasPrefix(status.Message(), "pod holds and 1 more: 2 ") || !strings.Contains(status.Message(), "n2") {
		t.Errorf("the group is told %v", status)
	}
	if got := r.counted("moorage_scheduler_rejections_total", "NoFreeSlot", stagePlacing); got != 1 {
		t.Errorf("%v refusals are counted, want that of the pod that has no node", got)
	}
	eventually(t, "the pod to be tried again", func() bool { return strings.Contains(strings.Join(r.queue.names(), " "), "stuck") })
}

// An attempt with other plugins' old facts does not count.
func TestGroupIsNotWokenAgainInVain(t *testing.T) {
	r := newStillRig(t, fullNodes("d1")...)
	close(r.synced)
	pod := podWith("p", "d1")
	r.known(pod)
	if r.filter(pod, "n1").IsSuccess() {
		t.Fatal("n1 is not full")
	}
	r.apply(detached("a", "n1"))
	w := r.plugin.core.requeuer
	w.Look(t.Context())
	cycle := r.groupCycle()
	r.filterIn(cycle, pod, "n1")
	if !w.Woken(pod.UID) {
		t.Fatal("it was not woken")
	}
	r.postFilter(cycle, pod)
	if w.Woken(pod.UID) {
		t.Error("it counts as not tried since, and is woken again")
	}
}
