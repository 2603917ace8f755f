// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func groupOfMany(t testing.TB, members int, claimed bool) (*rig, []*corev1.Pod) {
	r := newStillRig(t)
	var pods []*corev1.Pod
	for i := range members {
		p := inGroup(podWith(fmt.Sprintf("p%d", i)), "absurd", 1)
		p.Spec.SchedulerName = "nobody"
		for v := range 20 {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint(v), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
		pods = append(pods, p)
	}
	if claimed {
		pods[0] = inGroup(podWith("p0", "d0"), "absurd", 1)
	}
	r.known(pods...)
	return r, pods
}

// PreEnqueue runs under the scheduling queue's lock: its cost must not grow with a tenant's group.
func TestOnePodOfALargeGroupCostsAsMuchAsOfASmall(t *testing.T) {
	for _, claimed := range []bool{false, true} {
		costs := func(members int) (enqueued, seen float64) {
			r, pods := groupOfMany(t, members, claimed)
			one := pods[members-1]
			enqueued = testing.AllocsPerRun(20, func() { r.plugin.PreEnqueue(t.Context(), one) })
			return enqueued, testing.AllocsPerRun(20, func() { r.plugin.core.podWritten(one, one) })
		}
		fewEnqueued, fewSeen := costs(4)
		manyEnqueued, manySeen := costs(64)
		if manyEnqueued > fewEnqueued+5 || manySeen > fewSeen+5 {
			t.Errorf("a claim %t: of 4 pods PreEnqueue allocates %v times and an event %v; of 64, %v and %v",
				claimed, fewEnqueued, fewSeen, manyEnqueued, manySeen)
		}
	}
}

func TestOneMorePodLooksAtNoOther(t *testing.T) {
	r, _ := groupOfMany(t, 30, true)
	g := r.plugin.core.groups
	g.recount(groupKey{namespace: "shop", name: "absurd"})
	more := inGroup(podWith("more"), "absurd", 1)
	if cost := testing.AllocsPerRun(1, func() { g.podSeen(more); g.podGone(more) }); cost > 60 {
		t.Errorf("one more pod of 30 allocates %v times: it looks at the others", cost)
	}
	r.putGroup("absurd", 1, 600)
	g.changed(groupKey{namespace: "shop", name: "absurd"})
	if why := g.kept[groupKey{namespace: "shop", name: "absurd"}]; why != "" {
		t.Errorf("the PodGroup is complete, and its pods are kept: %s", why)
	}
}

func TestGroupIndexFollowsLabelsAndEnds(t *testing.T) {
	x := newGroupIndex()
	a, b := groupKey{namespace: "shop", name: "a"}, groupKey{namespace: "shop", name: "b"}
	pod := inGroup(podWith("p", "d"), "a", 1)
	counted := func(key groupKey, living int, volumes bool) {
		t.Helper()
		if n, v := x.counts(key); n != living || v != volumes || len(x.pods(key)) < living {
			t.Errorf("group %s counts %d living pods, volumes %t; want %d, %t", key, n, v, living, volumes)
		}
	}
	x.put(pod)
	x.put(pod)
	counted(a, 1, true)
	x.put(inGroup(pod, "b", 1))
	counted(a, 0, false)
	counted(b, 1, true)
	ended := inGroup(pod, "b", 1)
	ended.Status.Phase = corev1.PodSucceeded
	x.put(ended)
	counted(b, 0, true)
	x.remove(pod.UID)
	counted(b, 0, false)
	if len(x.groups)+len(x.of) != 0 {
		t.Errorf("%d groups and %d pods are left", len(x.groups), len(x.of))
	}
}

func BenchmarkLargeGroup(b *testing.B) {
	r, pods := groupOfMany(b, 300, false)
	b.Run("event", func(b *testing.B) {
		for b.Loop() {
			r.plugin.core.podSeen(pods[0])
		}
	})
	b.Run("PreEnqueue", func(b *testing.B) {
		for b.Loop() {
			r.plugin.PreEnqueue(b.Context(), pods[0])
		}
	})
}
