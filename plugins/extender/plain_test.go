// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/test/apitest"
)

// Without a leader any process places pods without volumes, and refuses a bind if the pod has volumes, is
// another or is gone.
func TestPodsWithoutVolumesNeedNoLeader(t *testing.T) {
	web, victim, db := podWith("web"), boundTo(podWith("victim"), "n1"), podWith("db", "data")
	r := newIdleRig(t, func(r *rig) {
		r.disk("data")
		for _, pod := range []*corev1.Pod{web, victim, db} {
			r.Put("pods", pod)
		}
	})
	if result := r.filter(web); result.Error != "" || !slices.Equal(*result.NodeNames, []string{"n1", "n2", "n3"}) {
		t.Errorf("filter: %+v", result)
	}
	var scores extenderv1.HostPriorityList
	r.ask(verbPrioritize, extenderv1.ExtenderArgs{Pod: web, NodeNames: &[]string{"n1", "n2"}}, &scores)
	if len(scores) != 2 || scores[0] != (extenderv1.HostPriority{Host: "n1"}) {
		t.Errorf("prioritize: %v", scores)
	}
	if left := r.preemptFor(web, map[string]*corev1.Pod{"n1": victim}); !slices.Equal(left["n1"], []string{string(victim.UID)}) {
		t.Errorf("preempt: %v", left)
	}
	if against := r.bind(web, "n1"); against != "" || r.nodeOf(web) != "n1" {
		t.Errorf("bind: %q, and the pod is at %q", against, r.nodeOf(web))
	}
	if against := r.bind(web, "n1"); against != "" {
		t.Errorf("bind once more: %q", against)
	}
	another := web.DeepCopy()
	another.UID = "another"
	for pod, want := range map[*corev1.Pod]string{
		db: errNotLeading.Error(), another: errUnknownPod.Error(), podWith("gone"): "not found",
	} {
		if against := r.bind(pod, "n2"); !strings.Contains(against, want) {
			t.Errorf("bind of %s: %q, want %q", pod.Name, against, want)
		}
	}
	if result := r.filter(db); result.Error != errNotLeading.Error() {
		t.Errorf("filter of a pod with a volume: %+v", result)
	}
}

func TestBindWithoutALeaderFails(t *testing.T) {
	web := podWith("web")
	r := newIdleRig(t, func(r *rig) { r.Put("pods", web) })
	r.api(func(request apitest.Request, serve func()) error {
		if request.Verb == "create" {
			return errUnknownPod
		}
		serve()
		return nil
	})
	if against := r.bind(web, "n1"); !strings.Contains(against, "bind the pod") {
		t.Errorf("bind: %q", against)
	}
}
