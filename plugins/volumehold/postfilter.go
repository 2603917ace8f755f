// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/plugins/internal/words"
)

// PostFilter reports why the nodes that PreFilter left out were refused; the framework only says that they
// didn't satisfy the plugin. Its result never makes a pod schedulable.
//
// It also has a gathering give way, see groups.
func (p *VolumeHold) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	p.core.requeuer.Rejected(pod.UID)
	p.core.groups.stuck(ctx, state, pod)
	c := stateOf(state)
	if c == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	p.noteRefusals(pod, c)
	if f := c.freeing(); f.node != "" {
		return f.keep(), f.refusal()
	}
	if elsewhere := p.elsewhere(c); elsewhere != "" {
		return nil, fwk.NewStatus(fwk.Unschedulable, elsewhere)
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// empty: none left out.
func (p *VolumeHold) elsewhere(c *cycleState) string {
	if c.holder == "" {
		return ""
	}
	counts := map[string]int{}
	if others := p.nodes() - 1; others > 0 {
		for _, message := range words.Elsewhere(p.core.arbiter.Fit(c.snapshot, c.request, "", p.core.now()), c.holder) {
			counts[message] = others
		}
	}
	return words.Grouped(counts)
}

func (p *VolumeHold) nodes() int {
	infos, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return 0 // the cycle fails by itself
	}
	return len(infos)
}
