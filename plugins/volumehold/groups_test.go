// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func inGroup(pod *corev1.Pod, group string, created int64) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Labels = map[string]string{PodGroupLabel: group}
	pod.CreationTimestamp = metav1.Unix(created, 0)
	return pod
}

func (r *rig) putGroup(name string, minMember, timeoutSeconds int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.podGroups[name] = podGroup{int(minMember), time.Duration(timeoutSeconds) * time.Second}
}

func (r *rig) gathers(name string, pods int) {
	r.t.Helper()
	g := r.plugin.core.groups
	eventually(r.t, "the gathering of "+name, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		at := g.gatherings[groupKey{namespace: "shop", name: name}]
		return pods == 0 && at == nil || at != nil && len(at.members) == pods
	})
}

func (c *cycle) outcome() <-chan *fwk.Status {
	done := make(chan *fwk.Status, 1)
	go func() {
		status := c.verdict()
		if !status.IsSuccess() {
			c.unreserve()
		}
		done <- status
	}()
	return done
}

func twoSlots(t *testing.T, pods ...*corev1.Pod) *rig {
	t.Helper()
	var disks []ledger.Event
	for _, p := range pods {
		for _, v := range p.Spec.Volumes {
			disks = append(disks, disk(v.Name, ledger.AccessNode)...)
		}
	}
	r := newRig(t, all(disks, one(slotsAt("n1", 1), slotsAt("n2", 1), slotsAt("n3", 0)))...)
	r.known(pods...)
	return r
}

func TestGroupGoesTogether(t *testing.T) {
	a1, a2 := inGroup(podWith("a1", "d1"), "a", 1), inGroup(podWith("a2", "d2"), "a", 1)
	plain := inGroup(podWith("plain"), "a", 1)
	r := twoSlots(t, a1, a2, plain)
	r.putGroup("a", 3, 600)
	first := r.reserve(a1, "n1").permit().outcome()
	third := r.reserve(plain, "n3").permit().outcome()
	r.gathers("a", 2)
	if status := r.filter(podWith("other", "d2"), "n1"); status.IsSuccess() {
		t.Error("the slot of a pod that waits for its group is given away")
	}
	select {
	case status := <-first:
		t.Fatalf("one pod goes before the group is complete: %v", status)
	case status := <-third:
		t.Fatalf("the pod without volumes goes before the group is complete: %v", status)
	default:
	}
	second := r.reserve(a2, "n2").permit().outcome()
	for name, done := range map[string]<-chan *fwk.Status{"a1": first, "a2": second, "plain": third} {
		if status := <-done; !status.IsSuccess() {
			t.Errorf("%s: %v", name, status)
		}
	}
	r.gathers("a", 0)
}

// A pod does not wait if minMember others are bound.
func TestLateMember(t *testing.T) {
	a1, a2 := boundTo(inGroup(podWith("a1", "d1"), "a", 1), "n1"), inGroup(podWith("a2", "d2"), "a", 1)
	r := twoSlots(t, a1, a2)
	r.putGroup("a", 2, 600)
	late := r.reserve(a2, "n2").permit().outcome()
	if status := <-late; !status.IsSuccess() {
		t.Errorf("the group is complete with it, and it gets %v", status)
	}
}

func TestGroupComesToNeedFewer(t *testing.T) {
	a1, a2, a3 := inGroup(podWith("a1", "d1"), "a", 1), inGroup(podWith("a2", "d2"), "a", 1), inGroup(podWith("a3", "d3"), "a", 1)
	r := twoSlots(t, a1, a2, a3)
	r.putGroup("a", 3, 600)
	first, second := r.reserve(a1, "n1").permit().outcome(), r.reserve(a2, "n2").permit().outcome()
	r.gathers("a", 2)
	r.putGroup("a", 2, 600)
	r.plugin.core.groups.changed(groupKey{namespace: "shop", name: "a"})
	for _, status := range []*fwk.Status{<-first, <-second} {
		if !status.IsSuccess() {
			t.Errorf("two pods will do, and one of two gets %v", status)
		}
	}
}

// A pod kept by its group's pause does not make waiting pods give up.
func TestRestingPodsReleaseNobody(t *testing.T) {
	a1, plain := inGroup(podWith("a1", "d1"), "a", 1), inGroup(podWith("plain"), "a", 1)
	r := twoSlots(t, a1, plain)
	r.putGroup("a", 2, 600)
	g, key := r.plugin.core.groups, groupKey{namespace: "shop", name: "a"}
	g.mu.Lock()
	g.rests[key] = pause{g.core.now().Add(time.Hour), time.Hour}
	g.mu.Unlock()
	waits := r.reserve(plain, "n3").permit().outcome()
	r.gathers("a", 1)
	state, _, status := r.prefilter(a1)
	if status.IsSuccess() {
		t.Fatal("the group does not rest")
	}
	r.plugin.PostFilter(t.Context(), state, a1, nil)
	r.later.Store(int64(2 * time.Hour))
	goes := r.reserve(a1, "n1").permit().outcome()
	for name, done := range map[string]<-chan *fwk.Status{"a1": goes, "plain": waits} {
		if status := <-done; !status.IsSuccess() {
			t.Errorf("%s: %v", name, status)
		}
	}
}

func TestGroupIsReleasedTogether(t *testing.T) {
	tests := map[string]struct {
		min, timeout int32
		do           func(r *rig, a1, a2 *corev1.Pod)
		want         string
	}{
		"its time is over": {3, 1, func(*rig, *corev1.Pod, *corev1.Pod) {}, "not 3 pods of PodGroup shop/a had room for their volumes within 1s"},
		"one has no node": {3, 600, func(r *rig, _, _ *corev1.Pod) {
			r.gathers("a", 2)
			a3 := inGroup(podWith("a3", "d3"), "a", 1)
			state, _, _ := r.prefilter(a3)
			r.plugin.PostFilter(r.t.Context(), state, a3, nil)
		}, "PodGroup shop/a is given up for now: pod a3 has no node"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a1, a2 := inGroup(podWith("a1", "d1"), "a", 1), inGroup(podWith("a2", "d2"), "a", 1)
			third := inGroup(podWith("a3", "d3"), "a", 1) // if the group needs three, it has not reached Permit
			r := twoSlots(t, append([]*corev1.Pod{a1, a2}, []*corev1.Pod{third}[:test.min-2]...)...)
			r.putGroup("a", test.min, test.timeout)
			first, second := r.reserve(a1, "n1").permit().outcome(), r.reserve(a2, "n2").permit().outcome()
			test.do(r, a1, a2)
			for _, status := range []*fwk.Status{<-first, <-second} {
				if status.Code() != fwk.Unschedulable || test.want != "" && status.Message() != test.want {
					t.Errorf("got %s %q, want %q", status.Code(), status.Message(), test.want)
				}
			}
			eventually(t, "both to be tried again", func() bool {
				return slices.Equal(slices.DeleteFunc(r.queue.names(), func(n string) bool { return n == "a3" }), []string{"a1", "a2"})
			})
			eventually(t, "both slots to be free", func() bool {
				s := r.Snapshot()
				return s.Volume(volume("d1")).OnNode("n1") == nil && s.Volume(volume("d2")).OnNode("n2") == nil
			})
		})
	}
}

// The group that ranks first gets the other half, though either group may notice first.
func TestHalfReservedGroupsDoNotDeadlock(t *testing.T) {
	for finder, loses := range map[string]string{"a2": "b1", "b2": "b1"} {
		t.Run(finder+" has no node", func(t *testing.T) {
			a1, a2 := inGroup(podWith("a1", "da1"), "a", 1), inGroup(podWith("a2", "da2"), "a", 1)
			b1, b2 := inGroup(podWith("b1", "db1"), "b", 2), inGroup(podWith("b2", "db2"), "b", 2)
			r := twoSlots(t, a1, a2, b1, b2)
			r.putGroup("a", 2, 600)
			r.putGroup("b", 2, 600)
			first, other := r.reserve(a1, "n1").permit().outcome(), r.reserve(b1, "n2").permit().outcome()
			r.gathers("a", 1)
			r.gathers("b", 1)
			pod := map[string]*corev1.Pod{"a2": a2, "b2": b2}[finder]
			state, _, _ := r.prefilter(pod)
			for _, node := range []string{"n1", "n2", "n3"} {
				if r.RunFilterPlugins(t.Context(), state, pod, r.node(node)).IsSuccess() {
					t.Fatalf("%s fits %s", finder, node)
				}
			}
			r.plugin.PostFilter(t.Context(), state, pod, nil)
			if status := <-other; status.Code() != fwk.Unschedulable {
				t.Fatalf("%s keeps its node: %v", loses, status)
			}
			eventually(t, "the slot to be free", func() bool { return r.Snapshot().Volume(volume("db1")).OnNode("n2") == nil })
			second := r.reserve(a2, "n2").permit().outcome()
			for _, status := range []*fwk.Status{<-first, <-second} {
				if !status.IsSuccess() {
					t.Errorf("the first group: %v", status)
				}
			}
		})
	}
}

// A gathering gives way only if the pod would have its room, and the pod's group has a gathering.
func TestGatheringsKeepTheirNodes(t *testing.T) {
	tests := map[string]struct {
		pod    *corev1.Pod // comes first, without a node
		others []*corev1.Pod
		filter func(pod *corev1.Pod, node string, members int) bool // another plugin's filter, with so many members of b there
		yields bool
	}{
		"without volumes, and no other pod of its group has any": {pod: inGroup(podWith("a1"), "a", 1)},
		"without volumes, and other pods of its group have some": {pod: inGroup(podWith("a1"), "a", 1), others: []*corev1.Pod{inGroup(podWith("a2", "da2"), "a", 1)}},
		"without volumes, refused everywhere by another plugin": {
			pod: inGroup(podWith("a1"), "a", 1), others: []*corev1.Pod{inGroup(podWith("a2", "da2"), "a", 1)},
			filter: func(pod *corev1.Pod, _ string, _ int) bool { return pod.Name != "a1" },
		},
		"with volumes, and room for them": {pod: inGroup(podWith("a1", "da1"), "a", 1)},
		"with volumes, refused everywhere by another plugin": {
			pod:    inGroup(podWith("a1", "da1"), "a", 1),
			filter: func(pod *corev1.Pod, _ string, _ int) bool { return pod.Name != "a1" },
		},
		"without volumes, of a group that is not gathered": {
			pod:    inGroup(podWith("a1"), "a", 1),
			filter: func(pod *corev1.Pod, _ string, members int) bool { return pod.Name != "a1" || members == 0 },
		},
		"without a group": {pod: podWith("a1", "da1"), filter: func(pod *corev1.Pod, _ string, members int) bool { return pod.Name != "a1" || members == 0 }},
		"without volumes, and the gathering has what another plugin counts": {
			pod: inGroup(podWith("a1"), "a", 1), others: []*corev1.Pod{inGroup(podWith("a2", "da2"), "a", 1)},
			filter: func(pod *corev1.Pod, _ string, members int) bool { return pod.Name != "a1" || members == 0 },
			yields: true,
		},
		"with volumes, and the gathering has what another plugin counts": {
			pod: inGroup(podWith("a1", "da1"), "a", 1),
			filter: func(pod *corev1.Pod, node string, members int) bool {
				return pod.Name != "a1" || node == "n2" && members == 0
			},
			yields: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b1, b2 := inGroup(podWith("b1", "db1"), "b", 2), inGroup(podWith("b2", "db2"), "b", 2)
			r := newRigBeside(t, test.filter, b1)
			for _, p := range append(test.others, test.pod, b1, b2) {
				for _, v := range p.Spec.Volumes {
					r.apply(disk(v.Name, ledger.AccessNode)...)
				}
			}
			r.known(append(test.others, test.pod, b1, b2)...)
			r.putGroup("a", 1, 600)
			r.putGroup("b", 2, 600)
			done := r.reserve(b1, "n2").permit().outcome()
			r.gathers("b", 1)
			state, _, _ := r.prefilter(test.pod)
			r.plugin.PostFilter(t.Context(), state, test.pod, nil)
			if test.yields {
				if status := <-done; status.Message() != "PodGroup shop/b gives way to shop/a, which comes first" {
					t.Errorf("the gathering ends with %v", status)
				}
				return
			}
			r.gathers("b", 1)
			select {
			case status := <-done:
				t.Errorf("the gathering ends with %v", status)
			default:
			}
		})
	}
}

func TestIncompleteGroup(t *testing.T) {
	a1 := inGroup(podWith("a1", "d1"), "a", 1)
	r := twoSlots(t, a1)
	refused := func(want string) {
		t.Helper()
		if status := r.plugin.PreEnqueue(t.Context(), a1); status.IsSuccess() {
			t.Error("the pod comes into the queue")
		}
		if status := r.filter(a1, "n1"); status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != want {
			t.Errorf("got %v, want %q", status, want)
		}
	}
	refused("PodGroup shop/a does not exist")
	r.putGroup("a", 2, 600)
	refused("PodGroup shop/a has 1 of the 2 pods that it needs")
	going, ended := inGroup(podWith("a2", "d2"), "a", 1), inGroup(podWith("a3", "d3"), "a", 1)
	now := metav1.Now()
	going.DeletionTimestamp, ended.Status.Phase = &now, corev1.PodSucceeded
	gated := inGroup(podWith("a4"), "a", 1)
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
	r.known(going, ended, gated)
	refused("PodGroup shop/a has 1 of the 2 pods that it needs")
	r.plugin.core.podWritten(gated, inGroup(podWith("a4"), "a", 1)) // without its gate
	if status := r.plugin.PreEnqueue(t.Context(), a1); !status.IsSuccess() {
		t.Errorf("the group is complete: %v", status)
	}
	if status := r.filter(a1, "n1"); !status.IsSuccess() {
		t.Errorf("the group is complete: %v", status)
	}
}

// It is woken once the group is complete again.
func TestRefusedWhileItsGroupIsIncomplete(t *testing.T) {
	a1 := inGroup(podWith("a1", "d1"), "a", 1)
	r := twoSlots(t, a1)
	if status := r.filter(a1, "n1"); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Fatalf("without a PodGroup: %v", status)
	}
	r.putGroup("a", 1, 600)
	r.plugin.core.groups.changed(groupKey{namespace: "shop", name: "a"})
	eventually(t, "the pod to be woken", func() bool { return slices.Contains(r.queue.names(), "a1") })
}

func TestGroupWithoutVolumes(t *testing.T) {
	a1 := inGroup(podWith("a1"), "a", 1)
	r := twoSlots(t, a1)
	c := r.reserve(a1, "n1")
	if _, status := r.RunPermitPlugins(t.Context(), c.state, a1, "n1"); !status.IsSuccess() {
		t.Errorf("Permit says %v", status)
	}
}

// Pod-group cycles of kube-scheduler reserve as a simulation, and revert: nothing is left.
func TestPodGroupCyclesSimulate(t *testing.T) {
	r := twoSlots(t, podWith("p", "d1"), podWith("q", "d2"))
	p, q := podWith("p", "d1"), podWith("q", "d2")
	for range 3 { // placements that are tried
		var undo []func()
		for pod, node := range map[*corev1.Pod]string{p: "n1", q: "n2"} {
			state := framework.NewCycleState()
			state.SetPodGroupSchedulingCycle(framework.NewCycleState())
			if _, status, _ := r.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
				t.Fatal(status)
			}
			if status := r.RunFilterPlugins(t.Context(), state, pod, r.node(node)); !status.IsSuccess() {
				t.Fatalf("%s at %s: %v", pod.Name, node, status)
			}
			if status := r.RunReservePluginsReserve(t.Context(), state, pod, node); !status.IsSuccess() {
				t.Fatal(status)
			}
			undo = append(undo, func() { r.RunReservePluginsUnreserve(t.Context(), state, pod, node) })
		}
		if r.filter(podWith("other", "d1"), "n2").IsSuccess() {
			t.Error("what is reserved in the simulation does not count in it")
		}
		for _, revert := range slices.Backward(undo) {
			revert()
		}
	}
	s := r.Snapshot()
	if s.Volume(volume("d1")).OnNode("n1") != nil || s.Volume(volume("d2")).OnNode("n2") != nil {
		t.Error("a simulation has left a reservation")
	}
}

// A released group pauses, so that others get its slots first.
func TestReleasedGroupRests(t *testing.T) {
	a1, a2, other := inGroup(podWith("a1", "d1"), "a", 1), inGroup(podWith("a2", "d2"), "a", 1), podWith("other", "d3")
	r := twoSlots(t, a1, a2, other)
	r.apply(slotsAt("n2", 0))
	r.putGroup("a", 2, 600)
	first := r.reserve(a1, "n1").permit().outcome()
	r.gathers("a", 1)
	state, _, _ := r.prefilter(a2)
	r.plugin.PostFilter(t.Context(), state, a2, nil)
	<-first
	for _, pod := range []*corev1.Pod{a1, a2} {
		if status := r.filter(pod, "n1"); status.Message() != "PodGroup shop/a had no room for all its pods, and will be tried again" {
			t.Errorf("%s is told %v", pod.Name, status)
		}
	}
	if status := r.filter(other, "n1"); !status.IsSuccess() {
		t.Errorf("another pod: %v", status)
	}
	r.later.Add(int64(restMost))
	if status := r.filter(a1, "n1"); !status.IsSuccess() {
		t.Errorf("after its rest: %v", status)
	}
}
