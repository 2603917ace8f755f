// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func priority(pod *corev1.Pod, p int32) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.Priority = &p
	return pod
}

func never(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	policy := corev1.PreemptNever
	pod.Spec.PreemptionPolicy = &policy
	return pod
}

// Only if no node, new or old, nor preemption helps, and kube-scheduler would not refuse it.
func TestWhoIsGated(t *testing.T) {
	rwo, rwop := ledger.AccessNode, ledger.AccessPod
	full := all(disk("a", rwo), disk("b", rwo), one(attached("a", "n1"), attached("b", "n1")))
	at := func(name, claim, node string) *corev1.Pod { return priority(boundTo(podWith(name, claim), node), 10) }
	byLabel := one(ledger.Driver{Name: driver, Version: "1", AttachRequired: true, SELinuxMount: true},
		ledger.NodeState{Name: "n2", UID: "n2", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, SELinuxMount: true})
	labelled := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c1,c2"}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: pod.Spec.Volumes[0].Name}}}}
		return pod
	}
	tests := []struct {
		name   string
		events []ledger.Event
		others []*corev1.Pod
		pod    *corev1.Pod
		gated  bool
	}{
		{"free", disk("data", rwo), nil, podWith("p", "data"), false},
		{"no volumes", nil, nil, podWith("p"), false},
		{"no slot anywhere", all(disk("data", rwo), one(slotsAt("n1", 0), slotsAt("n2", 0), slotsAt("n3", 0))), nil, podWith("p", "data"), false},
		{"no claim", nil, nil, podWith("p", "data"), false},
		{"no claim, and a volume held at two nodes", all(disk("data", rwo), disk("more", rwo)),
			[]*corev1.Pod{at("one", "data", "n1"), at("two", "more", "n2")}, podWith("p", "data", "more", "none"), false},
		{"its PersistentVolume is being deleted, which only its attacher may refuse", all(disk("data", rwo), one(ledger.PersistentVolume{Name: "pv-data", UID: "pv-data", Version: "2", Volume: volume("data"), Access: rwo,
			Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Deleting: true})), nil, podWith("p", "data"), false},
		{"held, where there is room", disk("data", rwo), []*corev1.Pod{at("other", "data", "n2")}, podWith("p", "data"), false},
		{"held, with no room for the other volume, and preemption may make some", all(full, disk("data", rwo), disk("b2", rwo), one(slotsAt("n1", 3))),
			[]*corev1.Pod{at("other", "data", "n1")}, podWith("p", "data", "b2"), false},
		{"the same, and it may not", all(full, disk("data", rwo), disk("b2", rwo), one(slotsAt("n1", 3))),
			[]*corev1.Pod{at("other", "data", "n1")}, never(podWith("p", "data", "b2")), true},
		{"one pod's, of equal priority", disk("data", rwop), []*corev1.Pod{at("other", "data", "n2")}, priority(podWith("p", "data"), 10), false},
		{"one pod's, and a ticket of a tool has it", all(disk("data", rwop), one(asking("n2", ""))), nil, podWith("p", "data"), true},
		{"one pod's, of lower priority", disk("data", rwop), []*corev1.Pod{at("other", "data", "n2")}, priority(podWith("p", "data"), 11), false},
		{"the same, and it preempts nobody", disk("data", rwop), []*corev1.Pod{at("other", "data", "n2")}, never(priority(podWith("p", "data"), 11)), false},
		{"held with another SELinux label, of equal priority", all(disk("data", rwo), byLabel), []*corev1.Pod{labelled(at("other", "data", "n2"))}, priority(podWith("p", "data"), 10), true},
		{"the same, of lower priority", all(disk("data", rwo), byLabel), []*corev1.Pod{labelled(at("other", "data", "n2"))}, priority(podWith("p", "data"), 11), false},
		{"the same, with the same label", all(disk("data", rwo), byLabel), []*corev1.Pod{labelled(at("other", "data", "n2"))}, labelled(priority(podWith("p", "data"), 10)), false},
		{"shared with another SELinux label", all(disk("data", ledger.AccessMany), byLabel), []*corev1.Pod{labelled(at("other", "data", "n2"))}, priority(podWith("p", "data"), 10), false},
		{"two volumes, held at two nodes", all(disk("data", rwo), disk("more", rwo)),
			[]*corev1.Pod{at("one", "data", "n1"), at("two", "more", "n2")}, podWith("p", "data", "more"), true},
		{"its pods are going", disk("data", rwo), []*corev1.Pod{terminating(at("other", "data", "n2"))}, podWith("p", "data"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, test.events...)
			r.known(append(test.others, test.pod)...)
			if status := r.plugin.PreEnqueue(t.Context(), test.pod); status.IsSuccess() == test.gated {
				t.Errorf("PreEnqueue says %v, want it gated: %t", status, test.gated)
			}
			if _, gated := r.plugin.core.requeuer.Idle(test.pod.UID); gated != test.gated {
				t.Errorf("on the requeuer's list as gated: %t, want %t", gated, test.gated)
			}
		})
	}
}

func TestGatedUntilTheCachesAreComplete(t *testing.T) {
	r := newStillRig(t, disk("data", ledger.AccessNode)...)
	r.plugin.core.start(r.plugin.core.process)
	pod := podWith("p", "data")
	r.known(pod)
	if r.plugin.PreEnqueue(t.Context(), pod).IsSuccess() {
		t.Error("let through before the caches are complete")
	}
	close(r.synced)
	eventually(t, "the pod to be woken", func() bool { return slices.Equal(r.queue.names(), []string{"p"}) })
	if status := r.plugin.PreEnqueue(t.Context(), pod); !status.IsSuccess() {
		t.Errorf("once the caches are complete: %v", status)
	}
}

func TestGateOpensForANewNode(t *testing.T) {
	r := newStillRig(t, all(disk("data", ledger.AccessNode), disk("b2", ledger.AccessNode), one(slotsAt("n1", 0), slotsAt("n2", 1), slotsAt("n3", 0)))...)
	close(r.synced)
	holder, pod := boundTo(podWith("other", "data"), "n2"), never(podWith("p", "data", "b2"))
	r.known(holder, pod)
	r.apply(attached("data", "n2"))
	if r.plugin.PreEnqueue(t.Context(), pod).IsSuccess() {
		t.Fatal("not gated")
	}
	r.apply(readyNode("n1"))
	r.plugin.core.requeuer.Look(t.Context())
	if got := r.queue.names(); len(got) != 0 {
		t.Fatalf("woken are %v, and nothing has changed for it", got)
	}
	r.apply(slotsAt("n2", 0), detached("data", "n2"), ledger.PodGone{UID: string(holder.UID)})
	r.plugin.core.requeuer.Look(t.Context())
	if got := r.queue.names(); !slices.Equal(got, []string{"p"}) {
		t.Fatalf("woken are %v, want the pod", got)
	}
	if status := r.plugin.PreEnqueue(t.Context(), pod); !status.IsSuccess() {
		t.Errorf("still gated: %v", status)
	}
}

// Its message is outdated.
func TestTriedAgainWhenANewNodeWouldHelp(t *testing.T) {
	r := newStillRig(t, all(disk("data", ledger.AccessNode), disk("b2", ledger.AccessNode), one(slotsAt("n1", 0), slotsAt("n2", 1), slotsAt("n3", 0)))...)
	close(r.synced)
	holder, pod := boundTo(podWith("other", "data"), "n2"), never(podWith("p", "data", "b2"))
	r.known(holder, pod)
	r.apply(attached("data", "n2"))
	r.prefilter(pod)
	r.apply(slotsAt("n2", 0), detached("data", "n2"), ledger.PodGone{UID: string(holder.UID)})
	for range 2 {
		r.plugin.core.requeuer.Look(t.Context())
		if got := r.queue.names(); !slices.Equal(got, []string{"p"}) {
			t.Fatalf("woken are %v, want the pod once", got)
		}
	}
}

func (r *rig) patches() (conditions []corev1.PodCondition, versions []string) {
	r.t.Helper()
	for _, action := range r.kube.Actions() {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok || patch.GetSubresource() != "status" {
			continue
		}
		var pod corev1.Pod
		if err := json.Unmarshal(patch.GetPatch(), &pod); err != nil {
			r.t.Fatal(err)
		}
		conditions, versions = append(conditions, pod.Status.Conditions...), append(versions, pod.ResourceVersion)
	}
	return conditions, versions
}

// Each write names the pod's version.
func TestGatedPodIsTold(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), disk("more", ledger.AccessNode))...)
	holder, next, pod := boundTo(podWith("other", "data"), "n2"), boundTo(podWith("next", "data"), "n1"), podWith("p", "data", "more")
	pod.ResourceVersion, pod.Generation = "41", 5
	r.known(holder, boundTo(podWith("stays", "more"), "n3"), pod)
	r.plugin.PreEnqueue(t.Context(), pod)
	wants := []string{"pod shop/other", "pod shop/next"}
	for i, want := range wants {
		eventually(t, "the pod to be told of "+want, func() bool {
			conditions, _ := r.patches()
			return len(conditions) > 0 && strings.Contains(conditions[len(conditions)-1].Message, want)
		})
		conditions, versions := r.patches()
		if c := conditions[len(conditions)-1]; c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != VolumeWait || c.ObservedGeneration != 5 {
			t.Errorf("the condition is %+v", c)
		}
		if slices.Contains(versions, "") {
			t.Errorf("conditions were written for the versions %q", versions)
		}
		if i == 0 {
			r.apply(factOf(next), ledger.PodGone{UID: string(holder.UID)})
		}
	}
}

// The condition of kube-scheduler stays with a nominated node, or if a new node would help.
func TestOnlyWaitsAreToldOtherwise(t *testing.T) {
	said := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
	tests := map[string]struct {
		events []ledger.Event
		others []*corev1.Pod
		want   int
	}{
		"a new node would help": {disk("data", ledger.AccessNode), nil, 0},
		"stock refuses it, too": {disk("data", ledger.AccessPod), []*corev1.Pod{boundTo(podWith("other", "data"), "n2")}, 0},
		"it must be the holder": {disk("data", ledger.AccessNode), []*corev1.Pod{boundTo(podWith("other", "data"), "n2")}, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, test.events...)
			pod := podWith("p", "data")
			pod.Status.Conditions = said
			r.known(append(test.others, pod)...)
			r.prefilter(pod)
			if err := r.plugin.core.conditions.writeCondition(t.Context(), objectName(pod)); err != nil {
				t.Fatal(err)
			}
			conditions, _ := r.patches()
			if len(conditions) != test.want {
				t.Fatalf("%d conditions were written, want %d", len(conditions), test.want)
			}
			if test.want > 0 && (conditions[0].Reason != VolumeWait || conditions[0].Message != said[0].Message) {
				t.Errorf("the condition is %+v, want the same message with another reason", conditions[0])
			}
			c := r.plugin.core
			c.requeuer.Reserved(pod.UID, true)
			if err := c.conditions.writeCondition(t.Context(), objectName(pod)); err != nil {
				t.Fatal(err)
			}
			if again, _ := r.patches(); len(again) != len(conditions) {
				t.Error("a pod that has a node was told that it waits")
			}
		})
	}
}
