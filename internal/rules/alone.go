// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// alone returns a reason for each node, except not, where only moorage-node says that a volume is mounted:
// the kubelet has forgotten it, and no attachment, list, user or hold has it there. The volume goes nowhere
// else until moorage-node's report ends or a rule of force overrides it. A node from which the hold says it
// was taken by force is not asked again.
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
