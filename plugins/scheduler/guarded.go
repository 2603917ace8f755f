// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/plugins/volumehold"
)

type extensions interface {
	fwk.PreEnqueuePlugin
	fwk.EnqueueExtensions
	fwk.PreFilterPlugin
	fwk.PreFilterExtensions
	fwk.FilterPlugin
	fwk.PostFilterPlugin
	fwk.PodGroupPostFilterPlugin
	fwk.PreScorePlugin
	fwk.ScorePlugin
	fwk.ReservePlugin
	fwk.PermitPlugin
	fwk.BindPlugin
	fwk.PostBindPlugin
	fwk.SignPlugin
}

var (
	_ extensions = &volumehold.VolumeHold{}
	_ extensions = guarded{}
)

// guarded turns a panic at an extension point into an error of the pod: the pod is tried again.
type guarded struct{ extensions }

// tell may be nil.
func recovered(point string, pod *corev1.Pod, tell func(error)) {
	r := recover()
	if r == nil {
		return
	}
	err := fmt.Errorf("plugin %s panicked at %s: %v", volumehold.Name, point, r)
	klog.Background().Error(err, "A fault in Moorage; please report it", "pod", klog.KObj(pod), "stack", string(debug.Stack()))
	if tell != nil {
		tell(err)
	}
}

func into(status **fwk.Status) func(error) {
	return func(err error) { *status = fwk.AsStatus(err) }
}

// PreEnqueue lets a pod through after a panic: a kept pod gets no reason.
func (g guarded) PreEnqueue(ctx context.Context, pod *corev1.Pod) (status *fwk.Status) {
	defer recovered("PreEnqueue", pod, func(error) { status = nil })
	return g.extensions.PreEnqueue(ctx, pod)
}

// EventsToRegister guards the hints too: after a panic the pod is tried.
func (g guarded) EventsToRegister(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	events, err := g.extensions.EventsToRegister(ctx)
	for i := range events {
		hint := events[i].QueueingHintFn
		if hint == nil {
			continue
		}
		events[i].QueueingHintFn = func(log klog.Logger, pod *corev1.Pod, old, changed any) (h fwk.QueueingHint, err error) {
			defer recovered("QueueingHint", pod, func(panicked error) { h, err = fwk.Queue, panicked })
			return hint(log, pod, old, changed)
		}
	}
	return events, err
}

func (g guarded) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (_ *fwk.PreFilterResult, status *fwk.Status) {
	defer recovered("PreFilter", pod, into(&status))
	return g.extensions.PreFilter(ctx, state, pod, nodes)
}

func (g guarded) PreFilterExtensions() fwk.PreFilterExtensions { return g }

func (g guarded) AddPod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, added fwk.PodInfo, node fwk.NodeInfo) (status *fwk.Status) {
	defer recovered("AddPod", pod, into(&status))
	return g.extensions.AddPod(ctx, state, pod, added, node)
}

func (g guarded) RemovePod(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, removed fwk.PodInfo, node fwk.NodeInfo) (status *fwk.Status) {
	defer recovered("RemovePod", pod, into(&status))
	return g.extensions.RemovePod(ctx, state, pod, removed, node)
}

func (g guarded) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (status *fwk.Status) {
	defer recovered("Filter", pod, into(&status))
	return g.extensions.Filter(ctx, state, pod, node)
}

func (g guarded) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes fwk.NodeToStatusReader) (_ *fwk.PostFilterResult, status *fwk.Status) {
	defer recovered("PostFilter", pod, into(&status))
	return g.extensions.PostFilter(ctx, state, pod, nodes)
}

func (g guarded) PodGroupPostFilter(ctx context.Context, state fwk.PodGroupCycleState, group fwk.PodGroupInfo, schedule fwk.PodGroupSchedulingFunc) (_ *fwk.PodGroupPostFilterResult, status *fwk.Status) {
	defer recovered("PodGroupPostFilter", nil, into(&status))
	return g.extensions.PodGroupPostFilter(ctx, state, group, schedule)
}

func (g guarded) PreScore(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (status *fwk.Status) {
	defer recovered("PreScore", pod, into(&status))
	return g.extensions.PreScore(ctx, state, pod, nodes)
}

func (g guarded) Score(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (_ int64, status *fwk.Status) {
	defer recovered("Score", pod, into(&status))
	return g.extensions.Score(ctx, state, pod, node)
}

func (g guarded) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (status *fwk.Status) {
	defer recovered("Reserve", pod, into(&status))
	return g.extensions.Reserve(ctx, state, pod, node)
}

// After a panic in Unreserve the pod may count until it is gone.
func (g guarded) Unreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	defer recovered("Unreserve", pod, nil)
	g.extensions.Unreserve(ctx, state, pod, node)
}

func (g guarded) Permit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (status *fwk.Status, _ time.Duration) {
	defer recovered("Permit", pod, into(&status))
	return g.extensions.Permit(ctx, state, pod, node)
}

func (g guarded) Bind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (status *fwk.Status) {
	defer recovered("Bind", pod, into(&status))
	return g.extensions.Bind(ctx, state, pod, node)
}

func (g guarded) PostBind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	defer recovered("PostBind", pod, nil)
	g.extensions.PostBind(ctx, state, pod, node)
}

func (g guarded) SignPod(ctx context.Context, pod *corev1.Pod) (_ []fwk.SignFragment, status *fwk.Status) {
	defer recovered("SignPod", pod, into(&status))
	return g.extensions.SignPod(ctx, pod)
}
