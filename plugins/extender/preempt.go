// SPDX-License-Identifier: Apache-2.0

package extender

import (
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
)

// preempt leaves of the nodes on which a scheduler would evict pods for this one
// those where it would then have its volumes: evictions elsewhere would be in
// vain. It adds no victims of its own, since it knows no pod's priority and no
// disruption budget.
func (x *extender) preempt(p wire.Preemption) extenderv1.ExtenderPreemptionResult {
	result := extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	fact, err := translate.Pod(p.Pod)
	if err != nil {
		return result
	}
	s, now := x.Facts.Snapshot(), x.Now()
	for node, victims := range p.Victims {
		var trial ledger.Delta
		for _, victim := range victims.Pods {
			trial.Remove(victim.UID)
		}
		without := s.With(&trial)
		request := arbiter.PodRequest(without, &fact)
		if !request.Attachable(without) || x.arbiter.Fit(without, request, ledger.NodeName(node), now).Allowed() {
			result.NodeNameToMetaVictims[node] = victims
		}
	}
	return result
}
