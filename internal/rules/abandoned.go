// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Abandoned lists a removal step for each terminating pod of a node that is out of service and not Ready,
// sorted by pod name. Pod garbage collection does the same every 20 s (pkg/controller/podgc,
// gcTerminating). It includes pods without volumes. Plan does this for pods that begin to terminate later.
// In Cooperative mode kube-controller-manager does it.
func (a Arbiter) Abandoned(s ledger.Snapshot, name ledger.NodeName) []Step {
	if a.Cooperative || !abandoned(s.Node(name)) {
		return nil
	}
	var pods []*ledger.Pod
	for p := range s.Pods() {
		if p.Node == name && p.Phase == ledger.PodTerminating {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *ledger.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	var steps []Step
	for _, p := range pods {
		steps = append(steps, Step{Do: RemovePod, Node: name, UID: p.UID})
	}
	return steps
}

// abandoned says whether the out-of-service taint vouches that nothing runs at a node. A Ready node
// contradicts the taint.
func abandoned(n *ledger.Node) bool {
	return n != nil && n.Exists && n.OutOfService && !ready(n)
}
