// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// slots is how the slots of a node are handed out to the tickets of a Queue. They are
// handed out in the order of rank, each ticket once: what one of them gets depends on those
// that rank before it, and never on those that rank after it, nor on what it has been told.
//
// A ticket that is to be granted has its slots. One that lacks nothing but slots, and does
// not yield, keeps those that are free (Ticket.AwaitsSlots). All
// others leave theirs to those that rank after them.
type slots struct {
	// leaves are the volumes that nothing binds to the node but tickets of the queue: of these
	// those have a slot that are in given or kept.
	leaves  map[ledger.VolumeID]bool
	leaving map[string]int32 // how many of them a driver has
	given   map[ledger.VolumeID]bool
	kept    map[ledger.VolumeID]bool
	handed  map[string]handed // by driver
}

// handed is how many slots of a driver have been handed out, without those of volumes that
// had one before.
type handed struct {
	given int32
	kept  int32 // and not given
}

// leave works out which volumes have no slot at the node unless it is handed out.
func (q *Queue) leave(node *ledger.Node) {
	q.slots = slots{
		leaves: map[ledger.VolumeID]bool{}, leaving: map[string]int32{},
		given: map[ledger.VolumeID]bool{}, kept: map[ledger.VolumeID]bool{}, handed: map[string]handed{},
	}
	looked := map[ledger.VolumeID]bool{}
	for _, t := range q.tickets {
		for _, v := range q.snapshot.TicketAt(t.ID) {
			if looked[v] {
				continue
			}
			looked[v] = true
			if q.onlyAsked(q.snapshot.Volume(v).NodeVolume(node.Name)) {
				q.slots.leaves[v] = true
				q.slots.leaving[v.Driver]++
			}
		}
	}
}

// onlyAsked says whether nothing binds a volume to the node but tickets that are decided on.
// One that a leader before may have granted is not.
func (q *Queue) onlyAsked(p *ledger.NodeVolume) bool {
	if p == nil || p.OccupiesSlot() {
		return false
	}
	return !slices.ContainsFunc(p.Users, func(u ledger.User) bool {
		switch claimStateOf(q.snapshot, u) {
		case noClaim:
			return false
		case requested:
			return q.snapshot.Ticket(u.Ticket).InDoubt
		default:
			return true
		}
	})
}

// takes says whether a volume has a slot at the node, in its own right or kept for a ticket
// that ranks before.
func (s *slots) takes(v ledger.VolumeID, p *ledger.NodeVolume) bool {
	return p != nil && !s.leaves[v] || s.given[v] || s.kept[v]
}

// used counts the slots of a driver that are taken, or kept for tickets that rank before.
func (s *slots) used(driver ledger.NodeDriver) int32 {
	h := s.handed[driver.Name]
	return driver.Used - s.leaving[driver.Name] + h.given + h.kept
}

// told is used as people are told it: who waits keeps what is free, and no more.
func (s *slots) told(driver ledger.NodeDriver, used, limit int32) int32 {
	return min(used, max(limit, s.used(driver)-s.handed[driver.Name].kept))
}

// give gives a slot to each volume of a ticket.
func (q *Queue) give(r Request) {
	q.each(r, func(v ledger.VolumeID, h *handed, stays bool) {
		if q.slots.given[v] {
			return
		}
		q.slots.given[v] = true
		if !stays {
			h.given++
		}
		if q.slots.kept[v] && !stays {
			h.kept--
		}
	})
}

// keep keeps a slot for each volume of a ticket that waits.
func (q *Queue) keep(r Request) {
	q.each(r, func(v ledger.VolumeID, h *handed, stays bool) {
		if q.slots.given[v] || q.slots.kept[v] {
			return
		}
		q.slots.kept[v] = true
		if !stays {
			h.kept++
		}
	})
}

// each calls do for each volume of a request that takes a slot; stays says that it has one
// whoever gets one.
func (q *Queue) each(r Request, do func(v ledger.VolumeID, h *handed, stays bool)) {
	for _, need := range r.Needs {
		if !need.TakesSlot() {
			continue
		}
		v := need.Volume
		h := q.slots.handed[v.Driver]
		do(v, &h, q.snapshot.Volume(v).NodeVolume(q.node) != nil && !q.slots.leaves[v])
		q.slots.handed[v.Driver] = h
	}
}

// slotsLast is what a ticket is told: that slots are missing only where
// nothing else is, since it keeps those then that come free; or why it doesn't keep them.
func (q *Queue) slotsLast(t *ledger.Ticket, r Request, v Verdict) Verdict {
	others := slices.DeleteFunc(slices.Clone(v.Reasons), func(r Reason) bool { return r.Code == NoFreeSlot })
	switch {
	case len(others) > 0:
		return refuse(others)
	case t.Type.Yields():
		return v // it keeps none anyway
	}
	if hopeless := q.tooFew(r, v.Reasons); len(hopeless) > 0 {
		return refuse(hopeless)
	}
	if first, is := q.keptElsewhere(r); is {
		return refuse([]Reason{first.of(v.First())}).SeenFrom(r.Who.Namespace)
	}
	return v
}

// tooFew says of which drivers a request needs more slots than the node has in all: it would
// keep slots that can't help it.
func (q *Queue) tooFew(r Request, reasons []Reason) []Reason {
	var list []Reason
	for _, reason := range reasons {
		reason.Code, reason.Needed = SlotsNotKept, 0
		for _, need := range r.Needs {
			if need.Volume.Driver == reason.Driver && need.TakesSlot() {
				reason.Needed++
			}
		}
		if reason.Needed > reason.Limit {
			list = append(list, reason)
		}
	}
	return list
}

// awaiting is a ticket that waits for slots at another node, and keeps them there.
type awaiting struct {
	request Request
	node    ledger.NodeName
	need    Need
}

// of is the reason for which a ticket that asks for the same volume keeps no slot.
func (w awaiting) of(r Reason) Reason {
	r.Code, r.Node = SlotsNotKept, w.node
	r.Volume, r.Claim, r.Who = w.need.Volume, w.need.Name, w.request.Who
	return r
}

// keptElsewhere says which ticket that ranks before a request keeps slots at another node for
// a volume that the request asks for, too. What is kept for a volume is kept at one node:
// else tickets for a few volumes would fill every node.
func (q *Queue) keptElsewhere(r Request) (awaiting, bool) {
	for _, need := range r.Needs {
		if !need.TakesSlot() {
			continue
		}
		first, known := q.elsewhere[need.Volume]
		if !known {
			first = q.firstElsewhere(need.Volume)
			q.elsewhere[need.Volume] = first
		}
		if first.node != "" && CompareRequests(first.request, r) < 0 {
			first.need = need
			return first, true
		}
	}
	return awaiting{}, false
}

// firstElsewhere is who ranks first of those that keep slots for a volume at other nodes.
func (q *Queue) firstElsewhere(id ledger.VolumeID) awaiting {
	var first awaiting
	v := q.snapshot.Volume(id)
	if v == nil {
		return first
	}
	for i := range v.NodeVolumes {
		p := &v.NodeVolumes[i]
		if p.Node == q.node || !p.TakesSlot() {
			continue
		}
		for _, u := range p.Users {
			t := q.snapshot.Ticket(u.Ticket)
			if t == nil || !t.AwaitsSlots() || claimStateOf(q.snapshot, u) != requested {
				continue
			}
			if r := ticketAsks(t); first.node == "" || CompareRequests(r, first.request) < 0 {
				first = awaiting{request: r, node: p.Node}
			}
		}
	}
	return first
}
