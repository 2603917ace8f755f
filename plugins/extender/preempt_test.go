// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func ranked(pod *corev1.Pod, priority int32) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.Priority = &priority
	return pod
}

func nominated(pod *corev1.Pod, node string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.NominatedNodeName = node
	return pod
}

func (r *rig) preemptFor(pod *corev1.Pod, victims map[string]*corev1.Pod) map[string][]string {
	r.t.Helper()
	args := extenderv1.ExtenderPreemptionArgs{Pod: pod, NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	for node, victim := range victims {
		args.NodeNameToMetaVictims[node] = &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: string(victim.UID)}}, NumPDBViolations: 1}
	}
	var result extenderv1.ExtenderPreemptionResult
	r.ask(verbPreempt, args, &result)
	left := map[string][]string{}
	for node, v := range result.NodeNameToMetaVictims {
		if v.NumPDBViolations != 1 {
			r.t.Errorf("node %s: %d violations of disruption budgets, want what was asked with", node, v.NumPDBViolations)
		}
		for _, p := range v.Pods {
			left[node] = append(left[node], p.UID)
		}
	}
	return left
}

// The scheduler doesn't know slots: for these the extender adds as few and unimportant pods as possible.
func TestPreemptAddsWhoeverHasTheSlots(t *testing.T) {
	pod := ranked(podWith("db", "data"), 10)
	busy := map[string]*corev1.Pod{}
	var pods []*corev1.Pod
	for _, n := range []string{"n1", "n2", "n3"} {
		busy[n] = boundTo(podWith("busy-"+n), n)
		pods = append(pods, busy[n])
	}
	pods = append(pods,
		ranked(boundTo(podWith("important", "a-n1"), "n1"), 5), ranked(boundTo(podWith("unimportant", "b-n1"), "n1"), 1),
		ranked(boundTo(podWith("equal", "a-n2"), "n2"), 10), ranked(boundTo(podWith("higher", "b-n2"), "n2"), 20))
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2")
		for _, p := range append(pods, pod) {
			r.Put("pods", p)
		}
	})
	r.seen(append(pods, pod)...)
	left := r.preemptFor(pod, busy)
	if want := []string{"uid-busy-n1", "uid-unimportant"}; !slices.Equal(left["n1"], want) {
		t.Errorf("at n1 the victims are %v, want %v", left["n1"], want)
	}
	if _, ok := left["n2"]; ok {
		t.Errorf("at n2, where nobody may be evicted for it, the victims are %v", left["n2"])
	}
	if want := []string{"uid-busy-n3"}; !slices.Equal(left["n3"], want) {
		t.Errorf("at n3, where slots are free, the victims are %v, want %v", left["n3"], want)
	}
	r.wantWrites()
}

func TestPreemptWaitsForTheDetach(t *testing.T) {
	pod := nominated(ranked(podWith("db", "data"), 10), "n1")
	busy, user := boundTo(podWith("busy"), "n2"), boundTo(podWith("user", "a-n2"), "n2")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2", "n3")
		for _, p := range []*corev1.Pod{busy, user, pod} {
			r.Put("pods", p)
		}
	})
	r.seen(busy, user, pod)
	if result := r.filter(pod); len(*result.NodeNames) > 0 {
		t.Fatalf("the pod fits %v", *result.NodeNames)
	}
	victims := map[string]*corev1.Pod{"n2": busy}
	if left := r.preemptFor(pod, victims); len(left) > 0 {
		t.Errorf("%v are evicted, and a slot comes free at n1", left)
	}
	if left := r.preemptFor(nominated(pod, ""), victims); len(left) == 0 {
		t.Error("nobody is evicted for a pod for which no slot comes free")
	}
}

func TestPreemptAddsWhoeverHasTheVolume(t *testing.T) {
	pod := ranked(podWith("db", "data"), 10)
	busy, user := boundTo(podWith("busy"), "n1"), boundTo(podWith("user", "data"), "n1")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.oneByOne("data")
		for _, p := range []*corev1.Pod{busy, user, pod} {
			r.Put("pods", p)
		}
	})
	r.seen(busy, user, pod)
	if got, want := r.preemptFor(pod, map[string]*corev1.Pod{"n1": busy})["n1"], []string{"uid-busy", "uid-user"}; !slices.Equal(got, want) {
		t.Errorf("the victims are %v, want %v", got, want)
	}
}

// A freed slot is not given to a less important pod.
func TestNomineesCount(t *testing.T) {
	nominee := nominated(ranked(podWith("nominee", "promised"), 10), "n1")
	low, high := podWith("low", "data"), ranked(podWith("high", "data"), 20)
	r := newRig(t, func(r *rig) {
		r.disk("data", "promised", "a")
		r.attach("a", "n1")
		r.fill("n2", "n3")
		for _, p := range []*corev1.Pod{nominee, low, high} {
			r.Put("pods", p)
		}
	})
	r.seen(nominee, low, high)
	refused := r.filter(low)
	if len(*refused.NodeNames) != 0 || refused.FailedNodes["n1"] != fullNode {
		t.Errorf("a pod of a lower priority: %+v", refused)
	}
	for _, p := range []*corev1.Pod{nominee, high} {
		if result := r.filter(p); !slices.Equal(*result.NodeNames, []string{"n1"}) {
			t.Errorf("pod %s: %+v", p.Name, result)
		}
	}
	if left := r.preemptFor(low, map[string]*corev1.Pod{"n1": boundTo(podWith("busy"), "n1")}); len(left) != 0 {
		t.Errorf("a pod of a lower priority may preempt with %v", left)
	}

	r.Remove("pods", nominee.Namespace, nominee.Name)
	r.eventually("the refused pod to be nudged", func() bool {
		var found corev1.Pod
		r.Get("pods", low.Namespace, low.Name, &found)
		return slices.ContainsFunc(found.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == v1alpha1.PodPlaceable })
	})
	if result := r.filter(low); !slices.Equal(*result.NodeNames, []string{"n1"}) {
		t.Errorf("once the nominee is gone: %+v", result)
	}
}

// The scheduler provisions before bind, and first writes the node on the pod: the slot counts from then on.
func TestSlotsOfClaimsThatAreBeingProvisioned(t *testing.T) {
	making := nominated(podWith("making", "new"), "n1")
	low, high := podWith("low", "data"), ranked(podWith("high", "data"), 20)
	r := newRig(t, func(r *rig) {
		r.disk("data", "a")
		r.attach("a", "n1")
		r.fill("n2", "n3")
		r.claim("new", false)
		for _, p := range []*corev1.Pod{making, low, high} {
			r.Put("pods", p)
		}
	})
	r.seen(making, low, high)
	if result := r.filter(low); result.FailedNodes["n1"] != fullNode {
		t.Errorf("a pod of the same priority: %+v", result)
	}
	if result := r.filter(high); !slices.Equal(*result.NodeNames, []string{"n1"}) {
		t.Errorf("a pod of a higher priority, before provisioning: %+v", result)
	}
	var claim corev1.PersistentVolumeClaim
	r.Get("persistentvolumeclaims", "shop", "new", &claim)
	claim.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n1"}
	r.Put("persistentvolumeclaims", &claim)
	r.eventually("the slot to be taken", func() bool { return r.filter(high).FailedNodes["n1"] == fullNode })
	if result := r.filter(making); !slices.Equal(*result.NodeNames, []string{"n1"}) {
		t.Errorf("the pod itself: %+v", result)
	}
}
