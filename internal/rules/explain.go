// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Explain is why a need at a node is not met yet, as shown to users, or Allow if the volume is safe to
// mount there.
func (a Arbiter) Explain(s ledger.Snapshot, need Need, n ledger.NodeName, now time.Time) Verdict {
	if a.SafeToMount(s, need.Volume, n) {
		return allow()
	}
	v := s.Volume(need.Volume)
	if broken := need.broken(s, v); len(broken) > 0 {
		return refuse(broken)
	}
	place := v.OnNode(n)
	if v == nil || !v.ID.IsReal() || place == nil {
		return refuse([]Reason{{Code: undecided(s, need, place, n), Volume: need.Volume, Claim: need.Name, Node: n}})
	}
	reasons := a.missing(s, v, place, now)
	for i := range reasons {
		reasons[i].Claim = need.Name
		reasons[i] = a.noFreeWorker(s, v, reasons[i], now)
	}
	return refuse(reasons)
}

// Concern is why a volume does not leave a node, perhaps not the holder's. False: no holder, or no reason.
func (a Arbiter) Concern(s ledger.Snapshot, v *ledger.Volume, now time.Time) (Reason, bool) {
	h := v.Record()
	if h.Node == "" {
		return Reason{}, false
	}
	p := a.planner(s, v, now)
	p.hold = h
	for _, n := range []ledger.NodeName{p.hold.Node, p.hold.Next.Node} {
		if place := v.OnNode(n); h.Reason == NodeFenced && place != nil && fenced(s, v, n, now) {
			return Reason{Code: NodeFenced, Volume: v.ID, Claim: claimOf(s, v), Node: n}, true
		}
	}
	place := v.OnNode(p.hold.Node)
	if p.hold.Node == ledger.Detached {
		place = nil // only its holder keeps it there
	}
	if reason, astray := p.astray(&h, place); astray {
		return reason, true
	}
	switch {
	case place == nil:
		return Reason{}, false
	case h.State == ledger.HoldAttachFailed:
		return Reason{Code: h.Reason, Volume: v.ID, Claim: claimOf(s, v), Node: p.hold.Node}, true
	}
	return stuckAt(a, s, v, place, now), true
}

// undecided: without a volume at a node, a need waits for the grant, then for the provisioner. A pod whose
// Node does not exist gets neither.
func undecided(s ledger.Snapshot, need Need, place *ledger.VolumeOnNode, n ledger.NodeName) ledger.Code {
	lives := func(u ledger.User) bool { return claimStateOf(s, u) == active }
	switch node := s.Node(n); {
	case need.Link == ledger.LinkUnbound && place != nil && slices.ContainsFunc(place.Users, lives):
		return ClaimUnbound
	case n != "" && n != ledger.Detached && (node == nil || !node.Exists):
		return NodeMissing
	}
	return NotGranted
}

// missing says what a place lacks before its volume may be mounted.
func (a Arbiter) missing(s ledger.Snapshot, v *ledger.Volume, place *ledger.VolumeOnNode, now time.Time) []Reason {
	p := a.planner(s, v, now)
	p.hold = p.asHeld()
	reason := Reason{Volume: v.ID, Node: place.Node}
	va := place.Own()
	if fenced(s, v, place.Node, now) {
		reason.Code = NodeFenced // all users have to let go of the volume
		return []Reason{reason}
	}
	if p.exclusive && p.hold.Node != place.Node && !p.migratesTo(place) {
		if holder := v.OnNode(p.hold.Node); holder != nil {
			stuck := stuckAt(a, s, v, holder, now)
			if was := holder.Own(); stuck.Code == Detaching && p.attachedAnew(holder, was) && !was.AttachError.IsZero() {
				stuck = failedAttach(s, v, was) // left there, and not detachable before
			}
			return []Reason{p.crossed(place, stuck)}
		}
	}
	switch {
	case bars(s, v, place) && !replaced(s.Node(place.Node), va):
		reason = formerMachineReason(s, v, place, former(s, v, place, now), reason)
	case v.ID.NoAttach():
		if reasons := p.elsewhere(place.Node, p.hold.Node); len(reasons) > 0 {
			return reasons
		}
		reason.Code = unreported(s.Node(place.Node))
	case va == nil:
		if reasons := p.blockers(s.Node(place.Node), place); len(reasons) > 0 {
			return reasons
		}
		reason = p.notBegun(place, reason)
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

// notBegun is why no attachment exists although nothing prevents it. Attaching means that it is the
// controller's next write.
func (p *planning) notBegun(place *ledger.VolumeOnNode, reason Reason) Reason {
	reason.Code = Attaching
	h := p.hold
	switch {
	case !p.exclusive || h.Node == "":
	case h.Node != place.Node && !p.migratesTo(place):
		reason.Code = NotGranted
	case h.Node == place.Node && h.State == ledger.HoldDetachPending && h.Reason == NodeUnreachable && !ready(p.snapshot.Node(place.Node)):
		reason = unreachableAt(reason, p.snapshot.Node(place.Node), force(p.snapshot, p.volume, place, p.now))
	}
	return reason
}

// unreported is why volumesAttached of a node omits an attached volume: the entry comes next, unless no
// controller writes it.
func unreported(n *ledger.Node) ledger.Code {
	switch {
	case n == nil || !n.Exists:
		return NodeMissing
	case !n.Managed:
		return NodeUnmanaged
	}
	return NotReported
}
