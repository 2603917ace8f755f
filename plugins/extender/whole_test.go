// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func (r *rig) schedule() {
	r.t.Helper()
	const file = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" +
		"profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {disabled: [{name: NodeVolumeLimits}]}}}]\n"
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(file), nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(r.Kube, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: r.Kube.EventsV1()})
	made, err := kubescheduler.New(r.t.Context(), r.Kube, factory, nil, profile.NewRecorderFactory(broadcaster),
		kubescheduler.WithProfiles(decoded.(*config.KubeSchedulerConfiguration).Profiles...),
		kubescheduler.WithExtenders(*r.asked(true)), kubescheduler.WithKubeConfig(&rest.Config{}))
	if err != nil {
		r.t.Fatal(err)
	}
	factory.Start(r.t.Context().Done())
	syncing, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for kind, synced := range factory.WaitForCacheSync(syncing.Done()) {
		if !synced {
			r.t.Fatalf("kube-scheduler's cache of %s is not complete: is it a kind that apitest knows?", kind)
		}
	}
	if err := made.WaitForHandlersSync(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	ctx := r.t.Context()
	go func() {
		defer close(ended)
		made.Run(ctx)
	}()
	r.t.Cleanup(func() { <-ended })
}

func roomy(name string) *corev1.Node {
	n := node(name)
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")}
	return n
}

func runnable(name string, claims ...string) *corev1.Pod {
	pod := podWith(name, claims...)
	pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	return pod
}

func (r *rig) told(pod *corev1.Pod, want string) {
	r.t.Helper()
	r.eventually("pod "+pod.Name+" to be told "+want, func() bool {
		var found corev1.Pod
		r.Get("pods", pod.Namespace, pod.Name, &found)
		return slices.ContainsFunc(found.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && strings.Contains(c.Message, want)
		})
	})
}

func (r *rig) nudges(pod *corev1.Pod) int {
	count := 0
	for _, request := range r.Requests() {
		if request.Verb == "patch" && request.Name == pod.Namespace+"/"+pod.Name && strings.Contains(request.Body, v1alpha1.PodPlaceable) {
			count++
		}
	}
	return count
}

// Without its own volume count a kube-scheduler sees no detach: one nudge is enough.
func TestOneNudgeIsEnough(t *testing.T) {
	pod := runnable("db", "data")
	r := newRig(t, func(r *rig) {
		r.disk("data")
		r.fill("n1", "n2", "n3")
		for _, n := range []string{"n1", "n2", "n3"} {
			r.Put("nodes", roomy(n))
		}
	})
	r.schedule()
	r.Put("pods", pod)
	r.told(pod, "0/3 nodes are available: 3 "+fullNode)
	r.Forget()
	r.detach("a-n1", "n1")
	r.eventually("the pod to be bound", func() bool { return r.nodeOf(pod) == "n1" })
	if n := r.nudges(pod); n > 1 {
		t.Errorf("%d nudges, want one at most", n)
	}
}
