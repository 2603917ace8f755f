// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// checkAttachPolicies finds AttachPolicies that do nothing, or leave a node without
// a slot.
func checkAttachPolicies(e *Evidence) []Finding {
	var list []Finding
	for _, p := range e.World.Policies {
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyInEffect); c != nil && c.Status == metav1.ConditionFalse {
			list = append(list, found(Warning, c.Reason+": "+c.Message, "docs/reasons.md says what "+c.Reason+" means.", "AttachPolicy %s is not in effect", p.Name))
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyRefused); c != nil && c.Status == metav1.ConditionTrue {
			list = append(list, found(Error, c.Reason+": "+c.Message, "docs/reasons.md says what "+c.Reason+" means.", "AttachPolicy %s is refused: no pod with a volume that it applies to is placed", p.Name))
		}
	}
	full := map[string][]string{}
	for _, s := range e.World.ListSlots() {
		if s.Limit != nil && *s.Limit == 0 && s.Stated != nil && *s.Stated > 0 {
			full[s.Driver] = append(full[s.Driver], fmt.Sprintf("%s (%d)", s.Node, *s.Stated))
		}
	}
	for _, driver := range sortedKeys(full) {
		list = append(list, found(Error, "the CSINode's own number of slots: "+some(full[driver]), "Lower slots.headroom, or raise slots.max: kubectl get attachpolicies.",
			"an AttachPolicy leaves driver %s no slot at %s: no pod gets a volume there", driver, facts.Count(len(full[driver]), "node")))
	}
	if len(list) == 0 {
		list = append(list, ok("AttachPolicies in effect: %d", len(e.World.Policies)))
	}
	return list
}
