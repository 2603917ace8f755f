// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"github.com/moorage-dev/moorage/internal/ledger"
)

// VolumeGranted says whether the controller has granted the volume that a need has
// become, at a node for which the need itself was granted: what a scheduler
// waits for before it binds a pod whose claim was not bound at the grant. That
// one was for a slot; an exclusive volume may turn out to be held elsewhere.
func (a Arbiter) VolumeGranted(s ledger.Snapshot, need Need, n ledger.NodeName) Verdict {
	v := s.Volume(need.Volume)
	if broken := need.broken(s, v); len(broken) > 0 {
		return refuse(broken)
	}
	reason := Reason{Code: NotGranted, Volume: need.Volume, Claim: need.Name}
	if need.Link == ledger.LinkUnbound {
		reason.Code = ClaimUnbound
		return refuse([]Reason{reason})
	}
	if !s.AttachRequired(need.Volume.Driver) || !exclusive(access(s, v, need.Access)) {
		return allow()
	}
	if v != nil && v.Hold != nil && (v.Hold.Node == n || v.Hold.Next.Node == n || migratesTo(s, v, v.NodeVolume(n))) {
		return allow()
	}
	return refuse([]Reason{reason})
}
