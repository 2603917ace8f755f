// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Reserve has the ledger count the pod's volumes at the node, after a verdict by the newest snapshot:
// Filter's may be older. It writes nothing.
func (p *VolumeHold) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	fact := factOf(pod)
	if len(fact.Volumes) == 0 {
		return nil
	}
	node, c := ledger.NodeName(nodeName), p.core
	verdict := c.placer.Reserve(fact, node, func(snapshot ledger.Snapshot) rules.Verdict {
		request := rules.PodRequest(snapshot, &fact)
		verdict := c.arbiter.Fit(snapshot, request, node, c.now())
		if !verdict.Allowed() && state.IsPodGroupSchedulingCycle() {
			seen, _ := p.inGroupCycle(snapshot, verdict)
			verdict = c.arbiter.Fit(seen, request, node, c.now())
		}
		return verdict
	})
	if !verdict.Allowed() {
		// Filter saw another state: another node may fit.
		c.requeuer.Retry(pod.UID)
		return nodeStatus(verdict, node)
	}
	c.requeuer.Reserved(pod.UID, true)
	if tried := stateOf(state); tried != nil {
		tried.placed = true
	}
	return nil
}

// Unreserve ends the ledger's count. The framework also calls it after a failed bind; then no Binding is in
// flight.
func (p *VolumeHold) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	// First: the end of the reservation has the pod judged by all changes that it missed.
	p.core.requeuer.Reserved(pod.UID, false)
	p.core.placer.Unreserve(string(pod.UID))
	if p.core.groups.leave(pod) {
		p.core.requeuer.Retry(pod.UID)
	}
}

// PostBind ends the plugin's part: the bound pod counts by itself.
func (p *VolumeHold) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	p.core.requeuer.Leave(pod.UID)
}
