// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Grant decides on a whole ticket: all of its volumes, or none. Granted=True, with the
// ticket's version, is the commit.
//
// A volume elsewhere that nobody living claims is promised to the ticket: the
// grant does not wait for the detach.
//
// All pending tickets may be decided on one snapshot: to each, those
// that rank before it count, and those after it do not. But a decision on a
// later snapshot has to know of every grant that was sent before: the ledger is told
// of each before it is sent, and where the answer is lost, what is found.
//
// Who decides on several tickets does so by one Line.
func (a Arbiter) Grant(s ledger.Snapshot, t *ledger.Ticket, now time.Time) Verdict {
	return a.Queue(s, t.Node, now).Grant(t)
}

// fenced says which exclusive volumes would be granted at a node that is fenced,
// from where they are taken for whoever asks elsewhere.
func (w view) fenced() []Reason {
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

// Keeps says whether a granted ticket may keep its grant. It loses it when it
// yields to somebody who was promised the volume, when its node is fenced and
// somebody asks for the volume elsewhere or got it, or it asks for any node, when it leaves its node
// (onDrain: Move), when what it asked for
// goes away or leads to another volume.
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
			continue // it was granted another one
		}
		if v != nil {
			p := a.planner(s, v, now)
			if lost := p.superseded(t, need.Name); len(lost) > 0 {
				reasons = append(reasons, lost...)
			} else if v.Hold == nil {
				continue
			} else if p.contested(t.Node) || t.Wherever && fenced(s, v, t.Node, now) {
				reasons = append(reasons, Reason{Code: NodeFenced, Volume: v.ID, Claim: need.Name, Node: t.Node})
			}
		}
	}
	return refuse(reasons).SeenFrom(t.ID.Namespace)
}

// And is a verdict with more reasons, as people of a namespace may see them.
func (v Verdict) And(reasons []Reason, namespace string) Verdict {
	if len(reasons) == 0 {
		return v
	}
	return refuse(slices.Concat(v.Reasons, reasons)).SeenFrom(namespace)
}

// ledElsewhere says which volumes of a granted ticket are for certain others, or none that needs an
// attachment, than those that it was granted.
func ledElsewhere(s ledger.Snapshot, t *ledger.Ticket) []Reason {
	if t.Phase != ledger.TicketGranted {
		return nil
	}
	var reasons []Reason
	for i, was := range s.TicketAt(t.ID) { // it keeps what it was granted
		v := t.Volumes[i]
		is, link := s.ResolveTicket(t, v)
		if is != was && was.IsReal() && (link == ledger.LinkVolume || link.NeedsNone()) {
			reasons = append(reasons, Reason{Code: ClaimMissing, Volume: is, Claim: v.Claim + v.PersistentVolume, Detail: madeAgain})
		}
	}
	return reasons
}

// superseded says to whom a granted ticket has lost a volume: an exclusive one, or one that is to
// be attached with other parameters at its node. A hold
// that was written before the grant was seen says nothing about it, where the
// next one gives the volume to the ticket.
func (p *planner) superseded(t *ledger.Ticket, name string) []Reason {
	h := hold(p.volume)
	at, who := p.firstOutranker(ledger.User{Ticket: t.ID}, t.Node)
	if at == t.Node && p.required { // who has other parameters there
		return []Reason{{Code: Outranked, Volume: p.volume.ID, Claim: name, Node: at, Who: who}}
	}
	if p.volume.Hold == nil {
		return nil
	}
	follows := ticketAsks(t).mayFollowMigration() && p.migratesTo(p.volume.NodeVolume(t.Node))
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
		at, who = h.Node, p.firstLiving(p.volume.NodeVolume(h.Node))
	}
	return []Reason{{Code: Outranked, Volume: p.volume.ID, Claim: name, Node: at, Who: who}}
}

// firstLiving is the first by name of those who live at a node, so that every controller
// names the same; zero: nobody does.
func (p *planner) firstLiving(place *ledger.NodeVolume) (first ledger.Requester) {
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

// firstOutranker is who ranks first of those to whom a user must yield, and where that is;
// empty: it need not yield.
func (p *planner) firstOutranker(u ledger.User, n ledger.NodeName) (at ledger.NodeName, who ledger.Requester) {
	var first Request
	for node, r := range p.outrankers(u, n) {
		if at == "" || CompareRequests(r, first) < 0 {
			at, first = node, r
		}
	}
	return at, first.Who
}

// contested says whether somebody asks elsewhere for an exclusive volume that
// counts at a fenced node no longer.
func (p *planner) contested(n ledger.NodeName) bool {
	if !p.exclusive || !p.required || !fenced(p.snapshot, p.volume, n, p.now) {
		return false
	}
	for i := range p.volume.NodeVolumes {
		place := &p.volume.NodeVolumes[i]
		if place.Node == n || fenced(p.snapshot, p.volume, place.Node, p.now) {
			continue
		}
		if slices.ContainsFunc(place.Users, func(u ledger.User) bool { st := claimStateOf(p.snapshot, u); return st == requested || st == active }) {
			return true
		}
	}
	return false
}

// Satisfied says whether a ticket is granted and every volume of it is at its node and
// safe to mount, and else why not.
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

// heldAway says why a granted ticket does not have an exclusive volume yet that its hold still gives to
// another node, though a live migration may have brought it to the ticket's node: it would leave
// that with the migration.
func (a Arbiter) heldAway(s ledger.Snapshot, t *ledger.Ticket, id ledger.VolumeID, now time.Time) []Reason {
	v := s.Volume(id)
	if ticketAsks(t).mayFollowMigration() || v == nil || v.Hold == nil || v.Hold.Node == t.Node {
		return nil
	}
	if p, holder := a.planner(s, v, now), v.NodeVolume(v.Hold.Node); p.exclusive && p.required && holder != nil {
		return []Reason{stuckAt(a, s, v, holder, now)}
	}
	return nil
}
