// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/verdicts"
)

// The words follow "0/3 nodes are available: 3 ". The extender runs the same rows.
func TestVerdictsAsStatuses(t *testing.T) {
	codes := map[verdicts.Outcome]fwk.Code{
		verdicts.Fits: fwk.Success, verdicts.Evictable: fwk.Unschedulable, verdicts.Hopeless: fwk.UnschedulableAndUnresolvable,
	}
	for _, row := range verdicts.Table() {
		t.Run(row.Name, func(t *testing.T) {
			r := newRig(t, append(verdicts.Nodes(), row.Facts...)...)
			status := r.filter(row.Pod, row.Node)
			if status.Code() != codes[row.Outcome] || status.Message() != row.Message {
				t.Errorf("got  %s %q,\nwant %s %q", status.Code(), status.Message(), codes[row.Outcome], row.Message)
			}
		})
	}
}

func TestPreFilterNarrowsToTheHolder(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	_, result, status := r.prefilter(podWith("p", "data"))
	if !status.IsSuccess() || !result.AllNodes() {
		t.Fatalf("free volume: %v, narrowed to %v", status, result)
	}
	other := podWith("other", "data")
	r.apply(factOf(boundTo(other, "n2")))
	_, result, status = r.prefilter(podWith("p", "data"))
	if !status.IsSuccess() || result.AllNodes() || !result.NodeNames.Has("n2") || len(result.NodeNames) != 1 {
		t.Errorf("held at n2: %v, narrowed to %v", status, result)
	}
	r.apply(ledger.PodGone{UID: "uid-other"}, factOf(boundTo(podWith("gone", "data"), "n9")))
	_, _, status = r.prefilter(podWith("p", "data"))
	if want := "can't take volume data: n9 holds it for pod shop/gone"; status.Message() != want || status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("held at a node that is not there: %s %q, want %q", status.Code(), status.Message(), want)
	}
}

func TestPodsWithoutAttachmentsNeedNoGrant(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.Driver{Name: driver, AttachRequired: false}))...)
	for _, pod := range []*corev1.Pod{podWith("none"), podWith("local", "data")} {
		state, _, status := r.prefilter(pod)
		if skipped := state.GetSkipFilterPlugins().Has(Name); !status.IsSuccess() || skipped != (len(pod.Spec.Volumes) == 0) {
			t.Errorf("pod %s is skipped: %t, %v", pod.Name, skipped, status)
		}
		if status := r.RunReservePluginsReserve(t.Context(), state, pod, "n1"); !status.IsSuccess() {
			t.Errorf("Reserve of pod %s: %v", pod.Name, status)
		}
		if _, status := r.RunPermitPlugins(t.Context(), state, pod, "n1"); !status.IsSuccess() {
			t.Errorf("Permit of pod %s: %v", pod.Name, status)
		}
	}
}

func TestPreemptionCountsOnFreedSlots(t *testing.T) {
	victim := boundTo(podWith("victim", "a"), "n1")
	stays := boundTo(podWith("stays", "b"), "n1")
	r := newRig(t, all(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), disk("data", ledger.AccessNode),
		one(factOf(victim), factOf(stays)))...)
	pod := podWith("p", "data")
	state, _, _ := r.prefilter(pod)
	filter := func(s fwk.CycleState) *fwk.Status { return r.RunFilterPlugins(t.Context(), s, pod, r.node("n1")) }
	if filter(state).IsSuccess() {
		t.Fatal("a full node is taken")
	}
	info, _ := framework.NewPodInfo(victim)
	trial := state.Clone()
	if status := r.RunPreFilterExtensionRemovePod(t.Context(), trial, pod, info, r.node("n1")); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := filter(trial); !status.IsSuccess() {
		t.Errorf("without the victim: %v", status)
	}
	if filter(state).IsSuccess() {
		t.Error("the trial changed the state that it was cloned from")
	}
	spared := trial.Clone()
	if status := r.RunPreFilterExtensionAddPod(t.Context(), spared, pod, info, r.node("n1")); !status.IsSuccess() {
		t.Fatal(status)
	}
	if filter(spared).IsSuccess() {
		t.Error("the victim is back, and its slot still counts as free")
	}
	if status := filter(trial); !status.IsSuccess() {
		t.Errorf("a trial changed the one that it was cloned from: %v", status)
	}
}

func TestNominatedPodsCount(t *testing.T) {
	r := newRig(t, all(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), disk("data", ledger.AccessNode))...)
	nominated := podWith("nominated", "a", "b")
	r.apply(factOf(nominated))
	pod := podWith("p", "data")
	state, _, _ := r.prefilter(pod)
	info, _ := framework.NewPodInfo(nominated)
	if status := r.RunPreFilterExtensionAddPod(t.Context(), state, pod, info, r.node("n1")); !status.IsSuccess() {
		t.Fatal(status)
	}
	status := r.RunFilterPlugins(t.Context(), state, pod, r.node("n1"))
	if status.IsSuccess() || !strings.Contains(status.Message(), "2 of 2 used") {
		t.Errorf("beside a nominated pod with two volumes: %v", status)
	}
	if status := r.RunFilterPlugins(t.Context(), state, pod, r.node("n2")); !status.IsSuccess() {
		t.Errorf("at another node: %v", status)
	}
}

func TestScorePrefersWhereTheVolumeIs(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), disk("a", ledger.AccessNode), one(attached("data", "n2"), attached("a", "n3")))...)
	pod := podWith("p", "data")
	state, _, _ := r.prefilter(pod)
	nodes := []fwk.NodeInfo{r.node("n1"), r.node("n2"), r.node("n3")}
	if status := r.RunPreScorePlugins(t.Context(), state, pod, nodes); !status.IsSuccess() {
		t.Fatal(status)
	}
	scores, status := r.RunScorePlugins(t.Context(), state, pod, nodes)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	got := map[string]int64{}
	for _, s := range scores {
		got[s.Name] = s.TotalScore
	}
	if !(got["n2"] > got["n1"] && got["n1"] > got["n3"]) || got["n2"] > 100 || got["n3"] < 0 {
		t.Errorf("scores are %v, want n2 (has the volume) over n1 (free) over n3 (half full), from 0 to 100", got)
	}
}

func TestSignPod(t *testing.T) {
	r := newRig(t)
	config := podWith("config")
	config.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}}
	for pod, signed := range map[*corev1.Pod]bool{podWith("plain"): true, config: true, podWith("disk", "data"): false} {
		if _, status := r.plugin.SignPod(t.Context(), pod); status.IsSuccess() != signed {
			t.Errorf("pod %s: %v, want signed: %v", pod.Name, status, signed)
		}
	}
}

func TestNothingIsPlacedBeforeTheCachesAreComplete(t *testing.T) {
	r := newStillRig(t, disk("data", ledger.AccessNode)...)
	r.plugin.core.start(r.plugin.core.process)
	pod := podWith("p", "data")
	r.known(pod)
	if _, _, status := r.prefilter(pod); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("before the caches are complete: %v", status)
	}
	close(r.synced)
	eventually(t, "the pod to be woken", func() bool { return len(r.queue.names()) == 1 })
	if _, _, status := r.prefilter(pod); !status.IsSuccess() {
		t.Errorf("once the caches are complete: %v", status)
	}
}

// A bound pod comes back to the scheduler only for its resize.
func TestBoundPodsAreSkipped(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), one(factOf(boundTo(podWith("other", "data"), "n2"))))...)
	pod := boundTo(podWith("p", "data", "missing"), "n1")
	r.known(pod)
	if status := r.plugin.PreEnqueue(t.Context(), pod); !status.IsSuccess() {
		t.Errorf("PreEnqueue: %v", status)
	}
	if state, _, status := r.prefilter(pod); !status.IsSuccess() || !state.GetSkipFilterPlugins().Has(Name) {
		t.Errorf("it is not skipped: %v", status)
	}
}
