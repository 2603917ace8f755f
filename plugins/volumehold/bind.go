// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Bind binds a pod with volumes, and writes its reservation in the same request. It first judges the node
// again: another scheduler may have bound a pod there, or a ticket may have got the volume. It leaves other
// pods to DefaultBinder.
//
// It returns when the outcome is known; until then the pod counts.
func (p *VolumeHold) Bind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	fact := factOf(pod)
	c := p.core
	snapshot := c.facts.Snapshot()
	if len(fact.Volumes) == 0 || len(rules.PodRequest(snapshot, &fact).Needs) == 0 {
		return fwk.NewStatus(fwk.Skip)
	}
	if verdict := c.recheck(snapshot, &fact, ledger.NodeName(node)); !verdict.Allowed() {
		c.metrics.rejected(stageReserving, string(verdict.First().Code))
		c.requeuer.Retry(pod.UID)
		return nodeStatus(verdict, ledger.NodeName(node))
	}
	return fwk.AsStatus(c.placer.Bind(ctx, pod, &fact, node))
}

func (c *core) recheck(s ledger.Snapshot, fact *ledger.Pod, n ledger.NodeName) rules.Verdict {
	without := &ledger.Delta{}
	without.Remove(fact.UID)
	seen := s.With(without)
	return c.arbiter.Fit(seen, rules.PodRequest(seen, fact), n, c.now())
}
