// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

const (
	fullNode  = "node(s) exceed max volume count: no free slot of driver disk.example.com (2 of 2 used)"
	heldByOld = "node(s) can't take volume data: n2 holds it for pod shop/old"
)

func TestFilterByNameAndByNode(t *testing.T) {
	old, pod := boundTo(podWith("old", "data"), "n2"), podWith("db", "data")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n3")
		r.Put("pods", old)
		r.Put("pods", pod)
	})
	r.seen(pod, old)
	result := r.filter(pod)
	if result.NodeNames == nil || !slices.Equal(*result.NodeNames, []string{"n2"}) || result.Nodes != nil || result.Error != "" {
		t.Errorf("by name: %+v", result)
	}
	if got := result.FailedAndUnresolvableNodes; got["n1"] != heldByOld || got["n3"] != fullNode+", "+heldByOld || len(got) != 2 || len(result.FailedNodes) != 0 {
		t.Errorf("by name: failed are %v and %v", got, result.FailedNodes)
	}

	nodes := &corev1.NodeList{}
	for _, name := range []string{"n1", "n2", "n3"} {
		n := node(name)
		n.Labels = map[string]string{"kept": "as it was, " + name}
		nodes.Items = append(nodes.Items, *n)
	}
	var byNode extenderv1.ExtenderFilterResult
	r.ask(verbFilter, extenderv1.ExtenderArgs{Pod: pod, Nodes: nodes}, &byNode)
	if byNode.NodeNames != nil || byNode.Nodes == nil || len(byNode.Nodes.Items) != 1 {
		t.Fatalf("by node: %+v", byNode)
	}
	if got := byNode.Nodes.Items[0]; got.Name != "n2" || got.Labels["kept"] != "as it was, n2" {
		t.Errorf("by node: the node comes back as %+v", got)
	}
	if !maps.Equal(byNode.FailedAndUnresolvableNodes, result.FailedAndUnresolvableNodes) {
		t.Errorf("by node the verdicts are %v", byNode.FailedAndUnresolvableNodes)
	}
	r.wantWrites()
}

// Fewer pods would do: preemption is worth a try.
func TestFilterTellsWhatPreemptionCanLift(t *testing.T) {
	pod := podWith("db", "data")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2", "n3")
		r.Put("pods", pod)
	})
	r.seen(pod)
	result := r.filter(pod)
	if len(*result.NodeNames) != 0 || len(result.FailedAndUnresolvableNodes) != 0 || len(result.FailedNodes) != 3 || result.FailedNodes["n1"] != fullNode {
		t.Errorf("result %+v", result)
	}
}

func TestFilterOfPodsThatNoNodeWillDoFor(t *testing.T) {
	pod := podWith("db", "nowhere")
	r := newRig(t, func(r *rig) { r.Put("pods", pod) })
	r.seen(pod)
	result := r.filter(pod)
	want := `persistentvolumeclaim "nowhere" not found`
	if len(*result.NodeNames) != 0 || len(result.FailedAndUnresolvableNodes) != 3 || result.FailedAndUnresolvableNodes["n3"] != want {
		t.Errorf("result %+v", result)
	}
}

func TestFilterReservesNothing(t *testing.T) {
	pods := []*corev1.Pod{podWith("p1", "c1"), podWith("p2", "c2"), podWith("p3", "c3")}
	r := newRig(t, func(r *rig) {
		for i, pod := range pods {
			r.disk(fmt.Sprintf("c%d", i+1))
			r.Put("pods", pod)
		}
	})
	r.seen(pods...)
	for _, pod := range slices.Concat(pods, pods) {
		if result := r.filter(pod); len(*result.NodeNames) != 3 {
			t.Errorf("pod %s: %+v", pod.Name, result)
		}
	}
	for _, pod := range pods {
		r.unreserved(pod)
	}
	for _, pod := range pods {
		r.Remove("pods", pod.Namespace, pod.Name)
	}
	r.eventually("the pods to be gone", func() bool { return r.x.Facts.Snapshot().Pod("uid-p3") == nil })
	r.eventually("the pods to be forgotten", func() bool { return r.x.requeuer.Waiting() == 0 })
	r.wantWrites()
}

func TestDeletedPodsAreForgotten(t *testing.T) {
	pod := podWith("db", "data")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2", "n3")
		r.Put("pods", pod)
	})
	r.seen(pod)
	r.filter(pod)
	if n := r.x.requeuer.Waiting(); n != 1 {
		t.Fatalf("%d pods are remembered, want 1", n)
	}
	ends, now := pod.DeepCopy(), metav1.Now()
	ends.DeletionTimestamp, ends.Finalizers = &now, []string{"example.com/kept"}
	r.Put("pods", ends)
	r.eventually("the pod to be forgotten", func() bool { return r.x.requeuer.Waiting() == 0 })
}

func TestFilterOfAPodThatDoesNotExist(t *testing.T) {
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2", "n3")
	})
	for i := range 5 {
		made := podWith(fmt.Sprintf("made-up-%d", i), "data")
		if result := r.filter(made); result.Error != errUnknownPod.Error() {
			t.Errorf("result %+v", result)
		}
	}
	if n := r.x.requeuer.Waiting(); n != 0 {
		t.Errorf("%d pods are remembered", n)
	}
}

func TestFilterOfAPodThatIsNotSeenYet(t *testing.T) {
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2", "n3")
	})
	pod := podWith("db", "data")
	r.Put("pods", pod)
	if result := r.filter(pod); len(result.FailedNodes) != 3 || result.Error != "" {
		t.Errorf("result %+v", result)
	}
	if n := r.x.requeuer.Waiting(); n != 1 {
		t.Errorf("%d pods are remembered, want 1", n)
	}
}

func TestPrioritizePrefersWhereTheVolumeIs(t *testing.T) {
	pod := podWith("db", "data")
	r := newRig(t, func(r *rig) {
		r.disk("data", "other")
		r.attach("data", "n2")
		r.attach("other", "n3")
		r.Put("pods", pod)
	})
	names := []string{"n1", "n2", "n3"}
	var list extenderv1.HostPriorityList
	r.ask(verbPrioritize, extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}, &list)
	got := map[string]int64{}
	for _, p := range list {
		got[p.Host] = p.Score
	}
	if len(list) != 3 || !(got["n2"] > got["n1"] && got["n1"] >= got["n3"]) || got["n2"] > extenderv1.MaxExtenderPriority || got["n3"] < extenderv1.MinExtenderPriority {
		t.Errorf("scores are %v, want n2 (has the volume) over n1 (free) over n3 (half full), from 0 to 10", got)
	}
	r.ask(verbPrioritize, extenderv1.ExtenderArgs{Pod: podWith("plain"), NodeNames: &names}, &list)
	for _, p := range list {
		if p.Score != 0 {
			t.Errorf("a pod without volumes prefers %s", p.Host)
		}
	}
}

func TestPreemptLeavesTheNodesWhereItHelps(t *testing.T) {
	pod := podWith("db", "data")
	victim, stays := boundTo(podWith("victim", "a-n1"), "n1"), boundTo(podWith("stays"), "n2")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2", "n3")
		r.Put("pods", victim)
		r.Put("pods", stays)
		r.Put("pods", pod)
	})
	r.seen(victim, stays, pod)
	meta := func(pod *corev1.Pod) *extenderv1.MetaVictims {
		return &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: string(pod.UID)}}, NumPDBViolations: 1}
	}
	full := func(pod *corev1.Pod) *extenderv1.Victims {
		return &extenderv1.Victims{Pods: []*corev1.Pod{pod}, NumPDBViolations: 1}
	}
	for name, args := range map[string]extenderv1.ExtenderPreemptionArgs{
		"by name": {Pod: pod, NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"n1": meta(victim), "n2": meta(stays)}},
		"by pod":  {Pod: pod, NodeNameToVictims: map[string]*extenderv1.Victims{"n1": full(victim), "n2": full(stays)}},
	} {
		var result extenderv1.ExtenderPreemptionResult
		r.ask(verbPreempt, args, &result)
		left := result.NodeNameToMetaVictims["n1"]
		if len(result.NodeNameToMetaVictims) != 1 || left == nil || left.NumPDBViolations != 1 || len(left.Pods) != 1 || left.Pods[0].UID != string(victim.UID) {
			t.Errorf("%s: %+v", name, result.NodeNameToMetaVictims)
		}
	}
	var result extenderv1.ExtenderPreemptionResult
	r.ask(verbPreempt, extenderv1.ExtenderPreemptionArgs{Pod: podWith("plain"),
		NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{"n1": meta(victim), "n2": meta(stays)}}, &result)
	if len(result.NodeNameToMetaVictims) != 2 {
		t.Errorf("a pod without volumes: %+v", result.NodeNameToMetaVictims)
	}
}

func TestRefusedPodsAreTriedAgain(t *testing.T) {
	slot, lost := podWith("slot", "data"), podWith("lost", "nowhere")
	slot.Generation = 3
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2", "n3")
		r.Put("pods", slot)
		r.Put("pods", lost)
	})
	r.seen(slot, lost)
	r.filter(slot)
	r.filter(lost)
	placeable := func(pod *corev1.Pod) *corev1.PodCondition {
		var found corev1.Pod
		r.Get("pods", pod.Namespace, pod.Name, &found)
		for i := range found.Status.Conditions {
			if found.Status.Conditions[i].Type == v1alpha1.PodPlaceable {
				return &found.Status.Conditions[i]
			}
		}
		return nil
	}
	r.detach("a-n1", "n1")
	r.eventually("the pod to be nudged", func() bool { return placeable(slot) != nil })
	first := placeable(slot)
	if first.Status != corev1.ConditionTrue || first.Reason != reasonLifted || first.ObservedGeneration != 3 {
		t.Errorf("condition %+v", first)
	}
	if result := r.filter(slot); len(*result.NodeNames) != 1 || (*result.NodeNames)[0] != "n1" {
		t.Errorf("tried again: %+v", result)
	}
	r.attach("a-n1", "n1")
	r.eventually("the slot to be taken", func() bool { return len(*r.filter(slot).NodeNames) == 0 })
	r.detach("a-n1", "n1")
	r.eventually("the second nudge", func() bool { return placeable(slot).LastProbeTime.After(first.LastProbeTime.Time) })
	if placeable(lost) != nil {
		t.Error("a pod is nudged that the change does not concern")
	}
}

func TestNudgeOfAPodThatIsGone(t *testing.T) {
	r := newRig(t, nil)
	next := podWith("db", "data")
	next.UID = types.UID("uid-next")
	n := newPodToucher(r.Kube, time.Now, func(types.UID) bool { return true })
	key := podKey{types.NamespacedName{Namespace: "shop", Name: "db"}, "uid-db", 0}
	for _, there := range []bool{false, true} {
		if there {
			r.Put("pods", next)
		}
		if again, err := n.touchWhenDue(t.Context(), key); again != 0 || err != nil {
			t.Errorf("it is nudged again after %s: %v", again, err)
		}
	}
	var found corev1.Pod
	r.Get("pods", "shop", "db", &found)
	if len(found.Status.Conditions) != 0 {
		t.Errorf("the successor is nudged: %+v", found.Status.Conditions)
	}
}

// The scheduler asks about a part of a large cluster. A pod that may fit elsewhere is tried again.
func TestAskedAboutAPartOfTheCluster(t *testing.T) {
	const holder = "m-holder"
	pod, lost := podWith("db", "data"), podWith("lost", "nowhere")
	var names []string
	r := newRig(t, func(r *rig) {
		r.disk("data")
		for i := range sampleLeast {
			names = append(names, fmt.Sprintf("m%03d", i))
		}
		for _, name := range append(names, holder) {
			r.Put("csinodes", csiNode(name, 2))
		}
		r.Put("nodes", node(holder))
		for _, p := range []*corev1.Pod{pod, lost, boundTo(podWith("user", "data"), holder)} {
			r.Put("pods", p)
		}
	})
	r.seen(pod, lost)
	r.eventually("the holder to be seen", func() bool { return r.filter(pod).FailedAndUnresolvableNodes["n1"] != "" })
	r.Forget()
	for _, ask := range []struct {
		pod   *corev1.Pod
		names []string
	}{{lost, names}, {pod, names}} {
		var result extenderv1.ExtenderFilterResult
		r.ask(verbFilter, extenderv1.ExtenderArgs{Pod: ask.pod, NodeNames: &ask.names}, &result)
		if len(result.FailedAndUnresolvableNodes) != len(ask.names) {
			t.Fatalf("pod %s: %+v", ask.pod.Name, result)
		}
	}
	r.eventually("the pod to be nudged", func() bool { return len(r.writes()) > 0 })
	r.wantWrites("patch pods/status shop/db")
}

// A pod that is tried by itself meanwhile costs no write.
func TestNudgeOnlyWhoStillWaits(t *testing.T) {
	pod := podWith("db", "data")
	r := newRig(t, func(r *rig) { r.Put("pods", pod) })
	now, waits := time.Unix(100, 0), true
	n := newPodToucher(r.Kube, func() time.Time { return now }, func(types.UID) bool { return waits })
	key := podKey{types.NamespacedName{Namespace: "shop", Name: "db"}, pod.UID, 0}
	touch := func(want time.Duration) {
		t.Helper()
		if again, err := n.touchWhenDue(t.Context(), key); again != want || err != nil {
			t.Errorf("to be looked at again after %s (%v), want %s", again, err, want)
		}
	}
	n.enqueue(t.Context(), pod)
	touch(nudgeGrace)
	now, waits = now.Add(nudgeGrace), false
	touch(0)
	r.wantWrites()

	waits = true
	n.enqueue(t.Context(), pod)
	now = now.Add(nudgeGrace / 2)
	n.enqueue(t.Context(), pod)
	touch(nudgeGrace / 2)
	now = now.Add(nudgeGrace / 2)
	touch(0)
	r.wantWrites("patch pods/status shop/db")
	n.enqueue(t.Context(), pod)
	touch(nudgeInterval)
	now = now.Add(nudgeInterval)
	touch(0)
	r.wantWrites("patch pods/status shop/db", "patch pods/status shop/db")
}

func TestFilterOfALargeCluster(t *testing.T) {
	pod := podWith("db", "data")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.mustBeThere()
		r.Put("pods", pod)
	})
	r.seen(pod)
	nodes := &corev1.NodeList{}
	for i := range 5000 {
		n := node(fmt.Sprintf("node-%d", i))
		n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Time: &metav1.Time{Time: time.Unix(0, 0)}}}
		for j := range 50 {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/image-%d@sha256:0123456789abcdef", j)}, SizeBytes: 1 << 20})
		}
		nodes.Items = append(nodes.Items, *n)
	}
	nodes.Items[7].Name = "n1"
	body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: pod, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	if len(body) < 20<<20 {
		t.Fatalf("the request has only %d bytes", len(body))
	}
	code, answer := r.post(verbFilter, body)
	var result extenderv1.ExtenderFilterResult
	if err := json.Unmarshal(answer, &result); err != nil || code != 200 {
		t.Fatalf("%d, %v", code, err)
	}
	if len(result.Nodes.Items) != 1 || result.Nodes.Items[0].Name != "n1" || len(result.Nodes.Items[0].Status.Images) != 50 || len(result.FailedAndUnresolvableNodes) != 4999 {
		t.Errorf("%d nodes pass, %d fail", len(result.Nodes.Items), len(result.FailedAndUnresolvableNodes))
	}
	if got, want := result.FailedAndUnresolvableNodes["node-1"], "disk.example.com CSI driver is not installed on the node: driver disk.example.com is not registered"; got != want {
		t.Errorf("a node without the driver: %q, want %q", got, want)
	}
}

func TestVerbsOfALargeCluster(t *testing.T) {
	pod, victim := ranked(podWith("db", "data"), 10), boundTo(podWith("victim"), "n1")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.mustBeThere()
		r.attach("data", "n1")
		r.Put("pods", pod)
		r.Put("pods", victim)
	})
	r.seen(pod, victim)
	names := []string{"n1", "n2", "n3"}
	victims := map[string]*extenderv1.MetaVictims{}
	for i := range 5000 - len(names) {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	for _, name := range names {
		victims[name] = &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{{UID: string(victim.UID)}}}
	}
	var fit extenderv1.ExtenderFilterResult
	r.ask(verbFilter, extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}, &fit)
	if !slices.Equal(*fit.NodeNames, names[:3]) || len(fit.FailedAndUnresolvableNodes) != 4997 {
		t.Errorf("filter: %d nodes pass, %d fail", len(*fit.NodeNames), len(fit.FailedAndUnresolvableNodes))
	}
	var scores extenderv1.HostPriorityList
	r.ask(verbPrioritize, extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}, &scores)
	if len(scores) != 5000 || scores[4999].Host != names[4999] || scores[0].Score <= scores[4999].Score {
		t.Errorf("prioritize: %d scores, from %+v to %+v", len(scores), scores[0], scores[len(scores)-1])
	}
	var left extenderv1.ExtenderPreemptionResult
	r.ask(verbPreempt, extenderv1.ExtenderPreemptionArgs{Pod: pod, NodeNameToMetaVictims: victims}, &left)
	if got := slices.Sorted(maps.Keys(left.NodeNameToMetaVictims)); !slices.Equal(got, names[:3]) {
		t.Errorf("preempt: %d nodes are left, want %v", len(got), names[:3])
	}
}
