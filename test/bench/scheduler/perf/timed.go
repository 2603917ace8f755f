// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/moorage-dev/moorage/plugins/promptbinding"
	"github.com/moorage-dev/moorage/plugins/volumehold"
	"github.com/moorage-dev/moorage/test/bench/scheduler/timing"
)

type points map[string]*timing.Clock

func registry() (runtime.Registry, points) {
	all := points{}
	for _, name := range []string{"PreFilter", "Filter", "Score", "Reserve", "Permit"} {
		all[name] = &timing.Clock{}
	}
	factory := volumehold.NewFactory()
	return runtime.Registry{promptbinding.Name: promptbinding.New, volumehold.Name: func(ctx context.Context, args apiruntime.Object, h fwk.Handle) (fwk.Plugin, error) {
		made, err := factory.New(ctx, args, h)
		if err != nil {
			return nil, err
		}
		hold, ok := made.(*volumehold.VolumeHold)
		if !ok {
			return nil, fmt.Errorf("plugin %s is a %T", volumehold.Name, made)
		}
		return &timed{
			VolumeHold: hold,
			prefilter:  all["PreFilter"], filter: all["Filter"], score: all["Score"], reserve: all["Reserve"], permit: all["Permit"],
		}, nil
	}}, all
}

type timed struct {
	*volumehold.VolumeHold
	prefilter, filter, score, reserve, permit *timing.Clock
}

func (t *timed) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	began := time.Now()
	r, s := t.VolumeHold.PreFilter(ctx, state, pod, nodes)
	t.prefilter.Add(time.Since(began))
	return r, s
}

func (t *timed) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	began := time.Now()
	s := t.VolumeHold.Filter(ctx, state, pod, node)
	t.filter.Add(time.Since(began))
	return s
}

func (t *timed) Score(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	began := time.Now()
	n, s := t.VolumeHold.Score(ctx, state, pod, node)
	t.score.Add(time.Since(began))
	return n, s
}

func (t *timed) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	began := time.Now()
	s := t.VolumeHold.Reserve(ctx, state, pod, node)
	t.reserve.Add(time.Since(began))
	return s
}

func (t *timed) Permit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	began := time.Now()
	s, d := t.VolumeHold.Permit(ctx, state, pod, node)
	t.permit.Add(time.Since(began))
	return s, d
}
