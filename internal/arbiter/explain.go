// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"
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
	place := v.NodeVolume(n)
	if v == nil || !v.ID.IsReal() || place == nil {
		return refuse([]Reason{{Code: undecided(s, need, place), Volume: need.Volume, Claim: need.Name}})
	}
	reasons := a.missing(s, v, place, now)
	for i := range reasons {
		reasons[i].Claim = need.Name
	}
	return refuse(reasons)
}

// undecided is what a need waits for that has led to no volume at a place yet: the
// grant, and then the provisioner.
func undecided(s ledger.Snapshot, need Need, place *ledger.NodeVolume) ledger.Code {
	lives := func(u ledger.User) bool { return standingOf(s, u) == living }
	if need.Link == ledger.LinkUnbound && place != nil && slices.ContainsFunc(place.Users, lives) {
		return ClaimUnbound
	}
	return NotGranted
}

// missing says what a place still lacks until its volume may be mounted.
func (a Arbiter) missing(s ledger.Snapshot, v *ledger.Volume, place *ledger.NodeVolume, now time.Time) []Reason {
	p := a.planner(s, v, now)
	p.hold = hold(v)
	reason := Reason{Volume: v.ID, Node: place.Node}
	va := place.Own()
	if p.required && fenced(s, v, place.Node, now) {
		reason.Code = NodeFenced // whoever lets go of the volume
		return []Reason{reason}
	}
	if p.exclusive && v.Hold != nil && v.Hold.Node != place.Node && !p.migratesTo(place) {
		if holder := v.NodeVolume(v.Hold.Node); holder != nil {
			return []Reason{stuckAt(a, s, v, holder, now)}
		}
	}
	switch {
	case v.ID.NoAttach():
		if reasons := p.elsewhere(place.Node, p.hold.Node); len(reasons) > 0 {
			return reasons
		}
		reason.Code = unreported(s.Node(place.Node))
	case va == nil:
		if reasons := p.blockers(s.Node(place.Node), place); len(reasons) > 0 {
			return reasons
		}
		reason.Code = Attaching
	case va.Deleting, replaced(s.Node(place.Node), va):
		return []Reason{stuckAt(a, s, v, place, now)}
	case va.Attached:
		reason.Code = unreported(s.Node(place.Node))
	case !va.AttachError.IsZero():
		reason = failedAttach(s, v, va)
	default:
		reason.Code = Attaching
	}
	return []Reason{reason}
}

// unreported is why volumesAttached of a node does not name what is attached there:
// it is about to, unless nobody writes it.
func unreported(n *ledger.Node) ledger.Code {
	switch {
	case n == nil || !n.Exists:
		return NodeMissing
	case !n.Managed:
		return NodeUnmanaged
	}
	return NotReported
}
