// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// ledger.Detached, at no node, is treated like a node: the same rules rank, grant and keep a ticket for it,
// and the holds name it. This keeps other users from a grant, and prevents attachments. The differences are
// in this file.

// keptFrom lists the tickets that keep a volume detached. No other tickets keep a shared volume or a live
// migration from a node. A ticket that only asks is passed over while a user has the volume and the ticket
// can't take it.
func (w evaluation) keptFrom(v *ledger.Volume, need Need) []Reason {
	place := v.KeptDetached()
	if place == nil || w.node == ledger.Detached {
		return nil
	}
	var reasons []Reason
	inUse := w.inUse(v)
	for _, u := range w.queue.blockers(place, w.request) {
		if len(reasons) < fewUsers && w.blocks(v, place, u) && (claimStateOf(w.snapshot, u) == active || !inUse) {
			reasons = append(reasons, w.heldBy(v, place, u, need.Name, HeldElsewhere))
		}
	}
	return reasons
}

// doubted names a ticket that an earlier leader may have granted against the request. For a shared volume
// the ticket or the request must keep it detached. While a user has an exclusive volume at the node, no
// leader has granted it elsewhere.
func (w evaluation) doubted(v *ledger.Volume, need Need) (Reason, bool) {
	exclusive := exclusive(told(v, need.Access))
	for i := range v.OnNodes {
		place := &v.OnNodes[i]
		if place.Node == w.node || exclusive && w.lives(v, v.OnNode(w.node)) || !exclusive && place.Node != ledger.Detached && w.node != ledger.Detached {
			continue
		}
		for _, u := range place.Users {
			if mayBeGranted(w.snapshot.Ticket(u.Ticket)) {
				return Reason{Code: NotGranted, Volume: v.ID, Claim: need.Name, Who: requester(w.snapshot, u)}, true
			}
		}
	}
	return Reason{}, false
}

// mayBeGranted says whether an earlier leader may have granted a pending ticket.
func mayBeGranted(t *ledger.Ticket) bool {
	return t != nil && t.Phase == ledger.TicketPending && t.InDoubt
}

// inUse says whether a volume has a user at any node that a ticket for a detached volume waits for.
func (w evaluation) inUse(v *ledger.Volume) bool {
	return slices.ContainsFunc(v.OnNodes, func(p ledger.VolumeOnNode) bool {
		return p.Node != ledger.Detached && !fenced(w.snapshot, v, p.Node, w.now) && slices.ContainsFunc(p.Users, func(u ledger.User) bool {
			t := w.snapshot.Ticket(u.Ticket)
			return !w.request.owns(u) && claimStateOf(w.snapshot, u) == active && (t == nil || !t.Type.Yields())
		})
	})
}

// neverAttached lists a ticket's volumes in use without an attachment: Moorage can't keep them from nodes.
func neverAttached(s ledger.Snapshot, t *ledger.Ticket) []Reason {
	if t.Node != ledger.Detached {
		return nil
	}
	var reasons []Reason
	for _, v := range t.Volumes {
		id, link := s.ResolveTicket(t, v)
		if link.NeedsNone() || !id.IsZero() && !s.AttachRequired(id.Driver) {
			reasons = append(reasons, Reason{Code: NeverAttached, Volume: id, Claim: v.Claim + v.PersistentVolume})
		}
	}
	return reasons
}

// detached is where a granted ticket's volumes may still be attached. Once their holds keep them detached,
// no leader attaches them.
func (a Arbiter) detached(s ledger.Snapshot, t *ledger.Ticket, now time.Time) []Reason {
	reasons := neverAttached(s, t)
	for _, need := range TicketRequest(s, t).Needs {
		v := s.Volume(need.Volume)
		if broken := need.broken(s, v); len(broken) > 0 {
			reasons = append(reasons, broken...)
			continue
		}
		if v == nil || !s.AttachRequired(v.ID.Driver) {
			continue
		}
		p := a.planner(s, v, now)
		p.hold = hold(v)
		somewhere := p.somewhere(t.SatisfiedSince != 0)
		for i := range somewhere {
			somewhere[i].Claim = need.Name
		}
		switch {
		case len(somewhere) > 0:
			reasons = append(reasons, somewhere...)
		case p.hold.Version == "" || p.hold.Node != ledger.Detached:
			reasons = append(reasons, Reason{Code: NotGranted, Volume: v.ID, Claim: need.Name})
		}
	}
	return reasons
}

// somewhere is stricter than mayBeAttached: a tool relies on the volume's being nowhere. A kubelet's list
// counts without an attachment. A ticket that was told stays satisfied if a pod is bound past it: a kubelet
// lists its volumes at once, and mounts only what was attached since. For older mounts see remains.
func (p *planning) somewhere(told bool) []Reason {
	reasons := alone(p.snapshot, p.volume, "", p.now)
	for i := range p.volume.OnNodes {
		place := &p.volume.OnNodes[i]
		is := attachedAt(place) || place.Left || p.unproved(place) || p.mayBeInUse(place) && (!told || unused(p.snapshot, place))
		switch {
		case place.Node == ledger.Detached || len(reasons) >= fewUsers:
		case is:
			reasons = append(reasons, p.stuck(place))
		case p.remains(place):
			reasons = append(reasons, p.mountOf(place))
		}
	}
	for _, f := range p.hold.Fences { // only the hold tells of it
		place := &ledger.VolumeOnNode{Node: f.Node}
		if p.volume.OnNode(f.Node) == nil && len(reasons) < fewUsers && p.remains(place) {
			reasons = append(reasons, p.mountOf(place))
		}
	}
	return reasons
}

// remains says whether a detached volume may still be mounted at a node, despite the kubelet's list. It may
// after a take by force while in use, if the outage is over but the boot is not.
func (p *planning) remains(place *ledger.VolumeOnNode) bool {
	n, id := p.snapshot.Node(place.Node), p.volume.ID
	if _, kept := keptFence(p.snapshot, p.volume, place.Node); kept || force(p.snapshot, p.volume, place, p.now).over() {
		return false
	}
	f, taken := p.hold.Fence(place.Node)
	return p.isUnknown(place) || n.SaysHas(id) || taken && f.InUse && !p.snapshot.BootOver(n, f.Boot())
}

func (p *planning) mountOf(place *ledger.VolumeOnNode) Reason {
	n, reason := p.snapshot.Node(place.Node), Reason{Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node}
	if n.SaysHas(p.volume.ID) {
		return stayingAt(p.snapshot, p.volume, place, reason, p.now)
	}
	reason.Code, reason.Detail = InUseUnknown, forgetfulTaken
	return reason
}

// mayBeInUse says whether an unattached volume may be mounted at a node, without a rule of force.
func (p *planning) mayBeInUse(place *ledger.VolumeOnNode) bool {
	if !place.MayBeInUse() && !place.WithoutAttachment() {
		return false
	}
	usage := p.evidenceOf(p.snapshot, p.volume, place, p.now).usage
	return usage != usageFenced && usage != usageNone
}

// staysDetached names the first ticket in rank that keeps a volume from every node.
func (p *planning) staysDetached(reason Reason) Reason {
	var first Request
	for _, u := range p.volume.KeptDetached().Users {
		if st := claimStateOf(p.snapshot, u); st != active && st != requested {
			continue
		}
		if r := requestOf(p.snapshot, u); first.Who.IsZero() || CompareRequests(r, first) < 0 {
			first = r
			reason.Until = yieldsBy(p.snapshot.Ticket(u.Ticket))
		}
	}
	reason.Code, reason.Node, reason.Who, reason.Detail = StaysDetached, "", first.Who, string(first.Type)
	return reason
}

// named rewords a reason about ledger.Detached, which is no node's name.
func (r Reason) named(s ledger.Snapshot) Reason {
	if r.Node != ledger.Detached || r.Code != HeldElsewhere && r.Code != UsedByOtherPod {
		return r
	}
	t := s.Ticket(ledger.TicketID{Namespace: r.Who.Namespace, Name: r.Who.Name})
	r.Code, r.Node, r.Detail = StaysDetached, "", ""
	if t != nil {
		r.Detail, r.Until = string(t.Type), yieldsBy(t)
	}
	return r
}
