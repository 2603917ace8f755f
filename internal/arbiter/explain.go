// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Explain says why a need of somebody at a node is not met yet: Allow when the
// volume is safe to mount there. The same reasons stand on the pod, the ticket
// and the hold, and in kubectl moorage explain.
func (a Arbiter) Explain(s ledger.Snapshot, need Need, n ledger.NodeName, now time.Time) Verdict {
	if !need.Volume.IsZero() && a.SafeToMount(s, need.Volume, n) {
		return allow()
	}
	if broken := need.broken(s); len(broken) > 0 {
		return refuse(broken)
	}
	v := s.Volume(need.Volume)
	place := v.Place(n)
	if v == nil || !v.ID.IsReal() || place == nil {
		return refuse([]Reason{{Code: NotGranted, Volume: need.Volume, Claim: need.Name}})
	}
	reasons := a.missing(s, v, place, now)
	for i := range reasons {
		reasons[i].Claim = need.Name
	}
	return refuse(reasons)
}

// missing says what a place still lacks until its volume may be mounted.
func (a Arbiter) missing(s ledger.Snapshot, v *ledger.Volume, place *ledger.Place, now time.Time) []Reason {
	p := a.planner(s, v, now)
	p.hold = hold(v)
	reason := Reason{Volume: v.ID, Node: place.Node}
	va := place.Own()
	if p.excl && v.Hold != nil && v.Hold.Node != place.Node && !p.migratesTo(place) {
		if holder := v.Place(v.Hold.Node); holder != nil {
			return []Reason{stuckAt(a, s, v, holder, now)}
		}
	}
	switch {
	case v.ID.NoAttach():
		if reasons := p.elsewhere(place.Node, p.hold.Node); len(reasons) > 0 {
			return reasons
		}
		reason.Code = NotReported
	case va == nil:
		if reasons := p.blockers(s.Node(place.Node), place); len(reasons) > 0 {
			return reasons
		}
		reason.Code = Attaching
	case va.Deleting, replaced(s.Node(place.Node), va):
		return []Reason{stuckAt(a, s, v, place, now)}
	case va.Attached:
		reason.Code = NotReported
	case !va.AttachError.IsZero():
		reason.Code, reason.Detail, reason.GRPC = AttachFailed, va.AttachError.Message, va.AttachError.Code
	default:
		reason.Code = Attaching
	}
	return []Reason{reason}
}
