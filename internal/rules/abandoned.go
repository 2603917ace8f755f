// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Abandoned lists the removal of all terminating pods of a node that is out of
// service and not Ready, in the order of their names, whatever volumes they have:
// what pod garbage collection does every 20 s (pkg/controller/podgc,
// gcTerminating). Plan does so for the pods of a volume that come to be terminating
// later. Beside another attach/detach controller that is left to the other.
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

// abandoned says whether somebody vouches for it that nothing runs at a node any
// more. A Ready one says otherwise.
func abandoned(n *ledger.Node) bool {
	return n != nil && n.Exists && n.OutOfService && !ready(n)
}
