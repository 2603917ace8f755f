// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Grant decides on a whole ticket: all of its volumes, or none. Granted=True, with the ticket's version, is
// the commit.
//
// A volume elsewhere without a living user is promised to the ticket: the grant does not wait for the
// detach.
//
// All pending tickets may be decided on one snapshot (Line). A later snapshot has to know each sent grant:
// the ledger is told before it is sent, and of the object found if the answer is lost.
func (a Arbiter) Grant(s ledger.Snapshot, t *ledger.Ticket, now time.Time) Verdict {
	return a.Queue(s, t.Node, now).Grant(t)
}

// fenced lists the exclusive volumes taken from the fenced node for users elsewhere.
func (w evaluation) fenced() []Reason {
	var reasons []Reason
	t := w.snapshot.Ticket(w.request.Ticket)
	anywhere := t != nil && t.Wherever
	for _, need := range w.request.Needs {
		v := w.snapshot.Volume(need.Volume)
		if v == nil || !w.snapshot.AttachRequired(v.ID.Driver) || !anywhere && !exclusive(access(w.snapshot, v, need.Access)) {
			continue
		}
		if fenced(w.snapshot, v, w.node, w.now) {
			reasons = append(reasons, Reason{Code: NodeFenced, Volume: v.ID, Claim: need.Name, Node: w.node})
		}
	}
	return reasons
}

// Keeps says whether a granted ticket may keep its grant: it need not yield, its node is not fenced for it,
// it need not leave (onDrain: Move), and its claims and volumes stay the same.
func (a Arbiter) Keeps(s ledger.Snapshot, t *ledger.Ticket, now time.Time) Verdict {
	reasons := slices.Concat(leaves(s, t, now), ledElsewhere(s, t))
	for _, need := range TicketRequest(s, t).Needs {
		v := s.Volume(need.Volume)
		if broken := need.broken(s, v); len(broken) > 0 {
			if broken[0].Code != VolumeMissing {
				reasons = append(reasons, broken...)
			}
			continue
		}
		if need.Volume.IsReal() && !slices.Contains(s.TicketAt(t.ID), need.Volume) {
			continue // it was granted another volume
		}
		if v != nil {
			p := a.planner(s, v, now)
			if lost := p.superseded(t, need.Name); len(lost) > 0 {
				reasons = append(reasons, lost...)
			} else if hold(v).Node == "" && !p.attachedAnywhere() {
				continue // nothing is there to be taken from the ticket
			} else if p.contested(t.Node) || t.Wherever && fenced(s, v, t.Node, now) {
				reasons = append(reasons, Reason{Code: NodeFenced, Volume: v.ID, Claim: need.Name, Node: t.Node})
			}
		}
	}
	return refuse(reasons).SeenFrom(t.ID.Namespace)
}

// And adds reasons, in words that a namespace's users may see.
func (v Verdict) And(reasons []Reason, namespace string) Verdict {
	if len(reasons) == 0 {
		return v
	}
	return refuse(slices.Concat(v.Reasons, reasons)).SeenFrom(namespace)
}

// ledElsewhere lists a granted ticket's volumes that certainly differ from the granted ones, or need no
// attachment now.
func ledElsewhere(s ledger.Snapshot, t *ledger.Ticket) []Reason {
	if t.Phase != ledger.TicketGranted {
		return nil
	}
	var reasons []Reason
	for i, was := range s.TicketAt(t.ID) { // the granted volumes
		v := t.Volumes[i]
		is, link := s.ResolveTicket(t, v)
		if is != was && was.IsReal() && (link == ledger.LinkVolume || link.NeedsNone()) {
			reasons = append(reasons, Reason{Code: ClaimMissing, Volume: is, Claim: v.Claim + v.PersistentVolume, Detail: madeAgain})
		}
	}
	return reasons
}

// superseded is the user to which a granted ticket has lost a volume. A hold from before the grant says
// nothing if the next hold gives the volume to the ticket.
func (p *holdPlan) superseded(t *ledger.Ticket, name string) []Reason {
	h := hold(p.volume)
	at, who := p.firstOutranker(ledger.User{Ticket: t.ID}, t.Node)
	if at == t.Node && p.required { // a user with other parameters there
		return []Reason{{Code: Outranked, Volume: p.volume.ID, Claim: name, Node: at, Who: who}}
	}
	follows := ticketAsks(t).mayFollowMigration() && p.migratesTo(p.volume.OnNode(t.Node))
	lost := h.Node != "" && h.Node != t.Node && h.Next.Node != t.Node && !follows
	if lost {
		next := p.nextHold(h)
		lost = next.Node != t.Node && next.Next.Node != t.Node
	}
	if !p.exclusive || !p.required || !lost && at == "" {
		return nil
	}
	if h.Next.Node != "" && h.Next.Node != t.Node {
		at, who = h.Next.Node, h.Next.To
	} else if lost {
		at, who = h.Node, p.firstLiving(p.volume.OnNode(h.Node))
	}
	return []Reason{{Code: Outranked, Volume: p.volume.ID, Claim: name, Node: at, Who: who}}
}

// firstLiving is the first by name, the same for all controllers; zero: none.
func (p *planning) firstLiving(place *ledger.VolumeOnNode) (first ledger.Requester) {
	if place == nil {
		return first
	}
	for _, u := range place.Users {
		if who := requester(p.snapshot, u); claimStateOf(p.snapshot, u) == active && (first.IsZero() || compareRequesters(who, first) < 0) {
			first = who
		}
	}
	return first
}

// firstOutranker is the first in rank to which a user must yield; empty: none.
func (p *planning) firstOutranker(u ledger.User, n ledger.NodeName) (at ledger.NodeName, who ledger.Requester) {
	var first Request
	for node, r := range p.outrankers(u, n) {
		if at == "" || CompareRequests(r, first) < 0 {
			at, first = node, r
		}
	}
	return at, first.Who
}

// contested says whether a user elsewhere asks for an exclusive volume that no longer counts at a fenced
// node.
func (p *planning) contested(n ledger.NodeName) bool {
	if !p.exclusive || !p.required || !fenced(p.snapshot, p.volume, n, p.now) {
		return false
	}
	for i := range p.volume.OnNodes {
		place := &p.volume.OnNodes[i]
		if place.Node == n || fenced(p.snapshot, p.volume, place.Node, p.now) {
			continue
		}
		if slices.ContainsFunc(place.Users, func(u ledger.User) bool { st := claimStateOf(p.snapshot, u); return st == requested || st == active }) {
			return true
		}
	}
	return false
}

// Satisfied says whether a ticket is granted, and each volume is at its node and safe to mount; else the
// reasons.
func (a Arbiter) Satisfied(s ledger.Snapshot, t *ledger.Ticket, now time.Time) Verdict {
	reasons := ledElsewhere(s, t)
	if t.Node == ledger.Detached && t.Phase == ledger.TicketGranted {
		return refuse(append(reasons, a.detached(s, t, now)...)).SeenFrom(t.ID.Namespace)
	}
	for _, need := range TicketRequest(s, t).Needs {
		if t.Phase != ledger.TicketGranted {
			reasons = append(reasons, Reason{Code: NotGranted, Volume: need.Volume, Claim: need.Name})
			continue
		}
		if away := a.heldAway(s, t, need.Volume, now); len(away) > 0 {
			reasons = append(reasons, away...)
			continue
		}
		if otherwise := a.AttachedOtherwise(s, TicketRequest(s, t).only(need), t.Node); !otherwise.Allowed() {
			reasons = append(reasons, otherwise.Reasons...)
			continue
		}
		if mounted := a.mountedOtherwise(s, t, need, now); len(mounted) > 0 {
			reasons = append(reasons, mounted...)
			continue
		}
		v := a.Explain(s, need, t.Node, now)
		if a.Cooperative && v.First().Code == NotReported {
			continue // the attach/detach controller reports for bound pods only
		}
		if !v.Allowed() {
			reasons = append(reasons, v.Reasons...)
		}
	}
	return refuse(reasons).SeenFrom(t.ID.Namespace)
}

// heldAway: while the hold gives an exclusive volume to another node, a live migration may have brought it
// here, but it would leave with the migration.
func (a Arbiter) heldAway(s ledger.Snapshot, t *ledger.Ticket, id ledger.VolumeID, now time.Time) []Reason {
	v := s.Volume(id)
	at := hold(v).Node
	if ticketAsks(t).mayFollowMigration() || at == "" || at == t.Node {
		return nil
	}
	if p, holder := a.planner(s, v, now), v.OnNode(at); p.exclusive && p.required && holder != nil {
		return []Reason{stuckAt(a, s, v, holder, now)}
	}
	return nil
}

// onlyPromised is the Detail of HeldElsewhere if the named node gets the volume next and another still has
// it.
const onlyPromised = "promised"

// heldBack is why an exclusive volume would not come to a node without a living rival: the planned hold
// gives or promises it elsewhere, or a grant elsewhere may be in flight. Fit asks this too
// (evaluation.free), so that a placed request is not refused afterwards.
//
// Grant asks with the request's grant in the snapshot. Fit need not: it asks only if users live at the
// node, or migrate to it.
func (p *holdPlan) heldBack(r Request, n ledger.NodeName, name string) (Reason, bool) {
	if p.fencedTicket(r, n) {
		return Reason{Code: NotGranted, Volume: p.volume.ID, Claim: name}, true
	}
	p.hold = p.nextHold(hold(p.volume))
	if p.hold.Node != n && p.hold.Next.Node != n && !p.migratesTo(p.volume.OnNode(n)) {
		return p.heldElsewhere(name), true
	}
	return Reason{}, false
}

// fencedTicket: a request that relies on a fence waits until the ticket at the fenced node is told to
// yield. Then the end of the fence can't make two holders.
func (p *holdPlan) fencedTicket(r Request, n ledger.NodeName) bool {
	return slices.ContainsFunc(p.volume.OnNodes, func(place ledger.VolumeOnNode) bool {
		return place.Node != n && fenced(p.snapshot, p.volume, place.Node, p.now) && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
			return p.isGrantee(u) && requester(p.snapshot, u).UID != r.Who.UID
		})
	})
}

// heldElsewhere is the reason that a hold gives a volume to another node: the promised node, else the
// holder's.
func (p *holdPlan) heldElsewhere(name string) Reason {
	reason := Reason{Code: HeldElsewhere, Volume: p.volume.ID, Claim: name, Node: p.hold.Node}
	if p.hold.Next.Node != "" {
		reason.Node, reason.Who, reason.Detail = p.hold.Next.Node, p.hold.Next.To, onlyPromised
	} else if len(p.hold.Requesters) > 0 {
		reason.Who = p.hold.Requesters[0]
	}
	return reason.named(p.snapshot)
}
