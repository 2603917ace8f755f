// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A ticket for ledger.Detached asks that its volumes be at no node. It has its place beside the
// nodes: it is ranked, granted and kept by the rules that are true of a ticket at a node, and its
// volumes' holds name it with ledger.Detached for a node. So nobody else is granted them, and no
// attachment is made, since the hold gives them to no node. What differs is here.

// keptFrom says which tickets keep a volume from a request at a node, since it is to be at none.
// An exclusive volume is kept by view.others, too; others of a volume that many share keep nobody
// from it, and a live migration only these. One that only asks is passed over as long as somebody
// has the volume whom it can't take it from.
func (w view) keptFrom(v *ledger.Volume, need Need) []Reason {
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

// doubted says which ticket, that a leader before this process may have granted, keeps a volume from one at a node. Of a
// volume that many share that is one that keeps it detached, or is at a node while this one would keep it detached. Where
// somebody has an exclusive volume at the node, no leader has granted it elsewhere.
func (w view) doubted(v *ledger.Volume, need Need) (Reason, bool) {
	exclusive := exclusive(told(w.snapshot, v, need.Access))
	for i := range v.NodeVolumes {
		place := &v.NodeVolumes[i]
		if place.Node == w.node || exclusive && w.lives(v, v.NodeVolume(w.node)) || !exclusive && place.Node != ledger.Detached && w.node != ledger.Detached {
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

// mayBeGranted says whether a leader before this process may have granted a pending ticket.
func mayBeGranted(t *ledger.Ticket) bool {
	return t != nil && t.Phase == ledger.TicketPending && t.InDoubt
}

// inUse says whether somebody has a volume at any node whom a ticket that asks for it to be
// detached waits for.
func (w view) inUse(v *ledger.Volume) bool {
	return slices.ContainsFunc(v.NodeVolumes, func(p ledger.NodeVolume) bool {
		return p.Node != ledger.Detached && !fenced(w.snapshot, v, p.Node, w.now) && slices.ContainsFunc(p.Users, func(u ledger.User) bool {
			t := w.snapshot.Ticket(u.Ticket)
			return !w.request.owns(u) && claimStateOf(w.snapshot, u) == active && (t == nil || !t.Type.Yields())
		})
	})
}

// neverAttached says which volumes of a ticket nobody can keep from nodes, since they are used
// without being attached.
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

// detached says whether a granted ticket's volumes are attached nowhere, and else where one may
// be. Their holds have to say that they are kept detached: no attachment is made from then on,
// by whichever leader.
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

// somewhere says where a volume is, or may be: stricter than mayBeAttached, as who works on a
// detached volume asks for its being nowhere, and not for whose turn it is. What a kubelet lists
// in use counts though nothing is attached there. Only a ticket that was told that it is satisfied
// stays so where a pod is bound past it: a kubelet lists what a pod there is to use, and mounts
// nothing that has not been attached since. It may have a mount of before where remains says so.
func (p *planner) somewhere(told bool) []Reason {
	reasons := alone(p.snapshot, p.volume, "", p.now)
	for i := range p.volume.NodeVolumes {
		place := &p.volume.NodeVolumes[i]
		is := attachedAt(place) || place.Left || p.unproved(place) || p.mayBeInUse(place) && (!told || unused(p.snapshot, place))
		switch {
		case place.Node == ledger.Detached || len(reasons) >= fewUsers:
		case is:
			reasons = append(reasons, p.stuck(place))
		case p.remains(place):
			reasons = append(reasons, p.mountOf(place))
		}
	}
	for _, f := range p.hold.Fences { // where nothing but the hold tells of it
		place := &ledger.NodeVolume{Node: f.Node}
		if p.volume.NodeVolume(f.Node) == nil && len(reasons) < fewUsers && p.remains(place) {
			reasons = append(reasons, p.mountOf(place))
		}
	}
	return reasons
}

// remains says whether a volume that is attached to a node no more may be mounted there still, whatever
// its kubelet lists and whoever is there: what the list says is in doubt; or moorage-node has found the
// volume there, or may be at work on it; or the hold says that it was taken from there by force while it
// was in use, and neither does that outage last nor is that boot over.
func (p *planner) remains(place *ledger.NodeVolume) bool {
	n, id := p.snapshot.Node(place.Node), p.volume.ID
	if _, kept := keptFence(p.snapshot, p.volume, place.Node); kept || force(p.snapshot, p.volume, place, p.now).over() {
		return false
	}
	f, taken := p.hold.Fence(place.Node)
	return Doubted(p.snapshot, p.volume, place) || n.SaysHas(id) || n.MayBeUnstaged(id) ||
		taken && f.InUse && !p.snapshot.BootOver(n, f.SystemUUID, f.BootID)
}

// mountOf is the reason of a volume that remains at a node.
func (p *planner) mountOf(place *ledger.NodeVolume) Reason {
	n, reason := p.snapshot.Node(place.Node), Reason{Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node}
	if n.SaysHas(p.volume.ID) || n.MayBeUnstaged(p.volume.ID) {
		return stayingAt(p.snapshot, p.volume, place, reason, p.now)
	}
	reason.Code, reason.Detail = InUseUnknown, forgetfulTaken
	return reason
}

// mayBeInUse says whether a volume without an attachment may be mounted at a node: its kubelet
// lists it, or the hold of one that needs no attachment gave it to the node, and no rule of force
// stands in for the kubelet's word.
func (p *planner) mayBeInUse(place *ledger.NodeVolume) bool {
	if !place.InUse && !place.WithoutAttachment() {
		return false
	}
	usage := p.evidenceOf(p.snapshot, p.volume, place, p.now).usage
	return usage != usageFenced && usage != usageNone
}

// staysDetached is the reason that a volume is kept from every node: for the ticket that ranks
// first of those that keep it.
func (p *planner) staysDetached(reason Reason) Reason {
	var first Request
	for _, u := range p.volume.KeptDetached().Users {
		if st := claimStateOf(p.snapshot, u); st != active && st != requested {
			continue
		}
		if r := requestOf(p.snapshot, u); first.Who.IsZero() || CompareRequests(r, first) < 0 {
			first = r
			reason.Until = yieldsBy(p.snapshot, p.snapshot.Ticket(u.Ticket))
		}
	}
	reason.Code, reason.Node, reason.Who, reason.Detail = StaysDetached, "", first.Who, string(first.Type)
	return reason
}

// keeps makes a reason of ledger.Detached tell that the volume is kept detached: no node of that
// name is to be told.
func (r Reason) named(s ledger.Snapshot) Reason {
	if r.Node != ledger.Detached || r.Code != HeldElsewhere && r.Code != UsedByOtherPod {
		return r
	}
	t := s.Ticket(ledger.TicketID{Namespace: r.Who.Namespace, Name: r.Who.Name})
	r.Code, r.Node, r.Detail = StaysDetached, "", ""
	if t != nil {
		r.Detail, r.Until = string(t.Type), yieldsBy(s, t)
	}
	return r
}
