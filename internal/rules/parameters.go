// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Only tickets with equal parameters, compared as text, share a volume at a node; pods have none.
//
// A ticket that yields is asked to let go, as for a user elsewhere. An earlier ticket in rank is granted
// the volume at once, and is satisfied after the other has let go (AttachedOtherwise).

// incompatible lists the users that keep a volume at the request's node from it by other parameters.
func (w evaluation) incompatible(v *ledger.Volume, need Need) []Reason {
	place := v.OnNode(w.node)
	if place == nil || w.node == ledger.Detached {
		return nil
	}
	var reasons []Reason
	for _, u := range w.queue.blockers(place, w.request) {
		if len(reasons) < fewUsers && parametersOf(w.snapshot, u) != w.request.Parameters && w.blocks(v, place, u) {
			reasons = append(reasons, attachedFor(w.snapshot, v, place, u, need.Name))
		}
	}
	return reasons
}

// AttachedOtherwise names the user for which a granted ticket's volume is still attached at its node with
// other parameters.
func (a Arbiter) AttachedOtherwise(s ledger.Snapshot, r Request, n ledger.NodeName) Verdict {
	var reasons []Reason
	for _, need := range r.Needs {
		v := s.Volume(need.Volume)
		place := v.OnNode(n)
		if place == nil || n == ledger.Detached {
			continue
		}
		for _, u := range place.Users {
			other := requestOf(s, u)
			if r.owns(u) || other.Parameters == r.Parameters || claimStateOf(s, u) != active || len(reasons) >= fewUsers {
				continue
			}
			if !r.Type.Yields() || other.priority() < ledger.PodPriority { // a ticket that yields had it first
				reasons = append(reasons, attachedFor(s, v, place, u, need.Name))
			}
		}
	}
	return refuse(reasons).SeenFrom(r.Who.Namespace)
}

// mountedOtherwise: a volume may still be mounted for an ending or departed pod at the node of a ticket
// with parameters. A volume in the kubelet's list, or in doubt, counts as a pod's: kubelets mount for pods
// only. moorage-node's finding counts until the ticket is told that it is satisfied: later it may be its
// own mount.
func (a Arbiter) mountedOtherwise(s ledger.Snapshot, t *ledger.Ticket, need Need, now time.Time) []Reason {
	v, n := s.Volume(need.Volume), s.Node(t.Node)
	place := v.OnNode(t.Node)
	if t.Parameters == "" || place == nil || !s.AttachRequired(v.ID.Driver) {
		return nil
	}
	reason := Reason{Volume: v.ID, Claim: need.Name, Node: t.Node}
	switch usage := a.evidenceOf(s, v, place, now).usage; {
	case usage == usageFenced:
		return nil
	case usage == usageStaged, t.SatisfiedSince == 0 && n.SaysHas(v.ID):
		return []Reason{stayingAt(s, v, place, reason, now)}
	case usage == usageInUse:
		for _, u := range place.Users {
			if p := s.Pod(u.Pod); p != nil && claimStateOf(s, u) == terminating {
				return []Reason{attachedFor(s, v, place, u, need.Name)}
			}
		}
		reason.Code = InUse
	case usage == usageUnknown, s.IsUnknown(v, place):
		reason.Code, reason.Detail = InUseUnknown, forgetful
	case t.SatisfiedSince == 0 && a.unsaid(s, v, place, now):
		reason.Code, reason.Detail = InUseUnknown, whyUnsaid(n, v.ID, now)
	default:
		return nil
	}
	return []Reason{reason}
}

func attachedFor(s ledger.Snapshot, v *ledger.Volume, place *ledger.VolumeOnNode, u ledger.User, name string) Reason {
	return Reason{
		Code: IncompatibleParameters, Volume: v.ID, Claim: name, Node: place.Node,
		Who: requester(s, u), Until: yieldsBy(s.Ticket(u.Ticket)),
	}
}

// parametersOf returns the parameters of a user; pods have none.
func parametersOf(s ledger.Snapshot, u ledger.User) string {
	if t := s.Ticket(u.Ticket); t != nil {
		return t.Parameters
	}
	return ""
}

// displacers are the users at a ticket's own node with other parameters to which it must yield a volume.
func (p *planning) displacers(t *ledger.Ticket) []ledger.User {
	place, own := p.volume.OnNode(t.Node), ledger.User{Ticket: t.ID}
	if place == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(place.Users), func(u ledger.User) bool {
		return parametersOf(p.snapshot, u) == t.Parameters || claimStateOf(p.snapshot, u) != active ||
			!yields(p.snapshot, own, requestOf(p.snapshot, u))
	})
}
