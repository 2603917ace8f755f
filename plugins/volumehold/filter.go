// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Filter asks whether the pod's volumes can follow it to the node. Its cost grows with the pod's own
// volumes only. In a group's cycle a refused node costs its pods and attachments too, and the first node of
// a preemption a look at each node.
func (p *VolumeHold) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	c := stateOf(state)
	if c == nil {
		return nil
	}
	if c.evicting {
		if f := c.freeing(); f.node != "" {
			return f.refusal()
		}
	}
	name := ledger.NodeName(node.Node().Name)
	verdict := p.core.arbiter.Fit(c.view(), c.request, name, p.core.now())
	if !verdict.Allowed() && state.IsPodGroupSchedulingCycle() {
		if seen, evicting := p.inGroupCycle(c.view(), verdict); evicting {
			if f := c.freeing(); f.node != "" {
				return f.refusal()
			}
			verdict = p.core.arbiter.Fit(seen, c.request, name, p.core.now())
		}
	}
	if status := nodeStatus(verdict, name); status != nil {
		c.seen.add(verdict)
		c.refused.Add(p.core.arbiter, c.view(), c.request, name, verdict, p.core.now())
		if !c.delta.Empty() && p.core.arbiter.Fit(c.snapshot, c.request, name, p.core.now()).Allowed() {
			c.promised.Store(true)
		}
		return status
	}
	return nil
}

// PreScore skips pods that PreFilter has skipped.
func (p *VolumeHold) PreScore(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if stateOf(state) == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score ranks a node from 0 to 100: by the volumes' location, then by free slots.
func (p *VolumeHold) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	c := stateOf(state)
	if c == nil {
		return 0, nil
	}
	return p.core.arbiter.Rank(c.snapshot, c.request, ledger.NodeName(node.Node().Name), p.weights), nil
}

// ScoreExtensions returns nil: Rank's scale is the framework's.
func (p *VolumeHold) ScoreExtensions() fwk.ScoreExtensions { return nil }
