// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// faulty panics at each extension point, and in its hint.
type faulty struct{ extensions }

func (faulty) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{}, {QueueingHintFn: func(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) { panic("a fault") }}}, nil
}

func TestPanicIsAnErrorOfThePod(t *testing.T) {
	g, ctx, pod := guarded{faulty{}}, t.Context(), &corev1.Pod{}
	statuses := map[string]*fwk.Status{
		"AddPod":    g.PreFilterExtensions().AddPod(ctx, nil, pod, nil, nil),
		"RemovePod": g.PreFilterExtensions().RemovePod(ctx, nil, pod, nil, nil),
		"Filter":    g.Filter(ctx, nil, pod, nil),
		"PreScore":  g.PreScore(ctx, nil, pod, nil),
		"Reserve":   g.Reserve(ctx, nil, pod, "n1"),
		"Bind":      g.Bind(ctx, nil, pod, "n1"),
	}
	_, statuses["PreFilter"] = g.PreFilter(ctx, nil, pod, nil)
	_, statuses["PostFilter"] = g.PostFilter(ctx, nil, pod, nil)
	_, statuses["PodGroupPostFilter"] = g.PodGroupPostFilter(ctx, nil, nil, nil)
	_, statuses["Score"] = g.Score(ctx, nil, pod, nil)
	statuses["Permit"], _ = g.Permit(ctx, nil, pod, "n1")
	_, statuses["SignPod"] = g.SignPod(ctx, pod)
	for point, status := range statuses {
		if status.Code() != fwk.Error || !strings.Contains(status.Message(), "VolumeHold panicked at "+point) {
			t.Errorf("after a panic at %s the status is %v", point, status)
		}
	}
	if status := g.PreEnqueue(ctx, pod); !status.IsSuccess() {
		t.Errorf("the pod is kept out of the queue: %v", status)
	}
	g.Unreserve(ctx, nil, pod, "n1")
	g.PostBind(ctx, nil, pod, "n1")
	events, err := g.EventsToRegister(ctx)
	if err != nil || len(events) != 2 || events[0].QueueingHintFn != nil {
		t.Fatalf("the events are %v: %v", events, err)
	}
	if hint, err := events[1].QueueingHintFn(klog.Background(), pod, nil, nil); hint != fwk.Queue || err == nil {
		t.Errorf("the hint is %v: %v", hint, err)
	}
}
