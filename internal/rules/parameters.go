// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Parameters say how a ticket's volumes are to be attached. At one node a volume is attached once,
// so that only those share it there who say the same; pods say nothing. Moorage compares the
// words, and reads none of them.
//
// A ticket that yields is asked to let go as it is for somebody at another node. A ticket that ranks
// before is granted the volume at once, and is not satisfied before the other one has let go (AttachedOtherwise).

// incompatible says who keeps a volume at the request's node from it, as it has other parameters.
func (w view) incompatible(v *ledger.Volume, need Need) []Reason {
	place := v.NodeVolume(w.node)
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

// AttachedOtherwise says for whom a volume is still attached at a node with other parameters than
// those of the ticket that has been granted it there: another ticket is asked to let go of it. The first one is
// satisfied only after that.
func (a Arbiter) AttachedOtherwise(s ledger.Snapshot, r Request, n ledger.NodeName) Verdict {
	var reasons []Reason
	for _, need := range r.Needs {
		v := s.Volume(need.Volume)
		place := v.NodeVolume(n)
		if place == nil || n == ledger.Detached {
			continue
		}
		for _, u := range place.Users {
			other := requestOf(s, u)
			if r.owns(u) || other.Parameters == r.Parameters || claimStateOf(s, u) != active || len(reasons) >= fewUsers {
				continue
			}
			if !r.Type.Yields() || other.priority() < ledger.PodPriority { // who yields had it first
				reasons = append(reasons, attachedFor(s, v, place, u, need.Name))
			}
		}
	}
	return refuse(reasons).SeenFrom(r.Who.Namespace)
}

// mountedOtherwise says why a volume may be mounted still at the node of a ticket with parameters for
// somebody who has none: a pod that is leaving, or has left. A kubelet mounts volumes for pods only, so
// that what it lists in use, or may use, counts as a pod's, whoever is known to be there. What
// moorage-node finds counts before the ticket is told that it is satisfied: later it may be the
// holder's own.
func (a Arbiter) mountedOtherwise(s ledger.Snapshot, t *ledger.Ticket, need Need, now time.Time) []Reason {
	v, n := s.Volume(need.Volume), s.Node(t.Node)
	place := v.NodeVolume(t.Node)
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
	case usage == usageUnknown, Doubted(s, v, place):
		reason.Code, reason.Detail = InUseUnknown, forgetful
	case t.SatisfiedSince == 0 && a.unsaid(s, v, place, now):
		reason.Code, reason.Detail = InUseUnknown, whyUnsaid(n, v.ID, now)
	default:
		return nil
	}
	return []Reason{reason}
}

func attachedFor(s ledger.Snapshot, v *ledger.Volume, place *ledger.NodeVolume, u ledger.User, name string) Reason {
	return Reason{
		Code: IncompatibleParameters, Volume: v.ID, Claim: name, Node: place.Node,
		Who: requester(s, u), Until: yieldsBy(s, s.Ticket(u.Ticket)),
	}
}

// parametersOf are the parameters of a user; a pod has none.
func parametersOf(s ledger.Snapshot, u ledger.User) string {
	if t := s.Ticket(u.Ticket); t != nil {
		return t.Parameters
	}
	return ""
}

// displacers are those at a ticket's own node to whom it must let go of a volume, as they have
// other parameters.
func (p *planner) displacers(t *ledger.Ticket) []ledger.User {
	place, own := p.volume.NodeVolume(t.Node), ledger.User{Ticket: t.ID}
	if place == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(place.Users), func(u ledger.User) bool {
		return parametersOf(p.snapshot, u) == t.Parameters || claimStateOf(p.snapshot, u) != active ||
			!yields(p.snapshot, own, requestOf(p.snapshot, u))
	})
}
