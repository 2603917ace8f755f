// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// alone says at which nodes but one a volume is mounted of which nothing tells but moorage-node's word:
// its kubelet has forgotten it, and neither an attachment nor a list, a user or a hold has it there. It
// goes nowhere else before that word ends, or a rule of force does without it. What the hold says that
// it was taken from there by force is not asked again.
func alone(s ledger.Snapshot, v *ledger.Volume, not ledger.NodeName, now time.Time) []Reason {
	var reasons []Reason
	for _, name := range s.MountedAlone(v.ID) {
		n := s.Node(name)
		_, taken := v.Hold.Fence(name)
		if name == not || taken || len(reasons) >= fewUsers || !n.SaysHas(v.ID) || fenced(s, v, name, now) {
			continue
		}
		reason := Reason{Code: StagedAtNode, Volume: v.ID, Claim: claimOf(s, v), Node: name}
		if unresponsive(n, now) {
			reason.Detail = oldWord
		}
		reasons = append(reasons, reason)
	}
	return reasons
}
