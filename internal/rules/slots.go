// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// slots are a node's slots, handed out to a Queue's tickets by rank: a ticket's share depends on earlier
// tickets only, never on messages.
//
// A ticket that will be granted has its slots. A ticket that lacks only slots, and does not yield, keeps
// the free ones (Ticket.AwaitsSlots). All others leave theirs.
type slots struct {
	// leaves are volumes that only queued tickets bind to the node. Their slots are in given or kept.
	leaves  map[ledger.VolumeID]bool
	leaving map[string]int32 // their number by driver
	given   map[ledger.VolumeID]bool
	kept    map[ledger.VolumeID]bool
	handed  map[string]handed // by driver
}

// handed counts a driver's newly handed-out slots.
type handed struct {
	given int32
	kept  int32 // but not given
}

// leave determines which volumes have a slot at the node only if it is handed out.
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
			if q.onlyAsked(q.snapshot.Volume(v).OnNode(node.Name)) {
				q.slots.leaves[v] = true
				q.slots.leaving[v.Driver]++
			}
		}
	}
}

// A ticket that an earlier leader may have granted does not count as queued.
func (q *Queue) onlyAsked(p *ledger.VolumeOnNode) bool {
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

// takes says whether a volume has a slot at the node, its own or one kept for an earlier ticket.
func (s *slots) takes(v ledger.VolumeID, p *ledger.VolumeOnNode) bool {
	return p != nil && !s.leaves[v] || s.given[v] || s.kept[v]
}

// used counts the slots of a driver that are taken, or kept for earlier tickets.
func (s *slots) used(driver ledger.NodeDriver) int32 {
	h := s.handed[driver.Name]
	return driver.Used - s.leaving[driver.Name] + h.given + h.kept
}

// told is used for messages: waiting tickets keep only free slots.
func (s *slots) told(driver ledger.NodeDriver, used, limit int32) int32 {
	return min(used, max(limit, s.used(driver)-s.handed[driver.Name].kept))
}

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

// keep keeps a slot for each volume of a waiting ticket.
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

// stays: the volume has a slot in any case.
func (q *Queue) each(r Request, do func(v ledger.VolumeID, h *handed, stays bool)) {
	for _, need := range r.Needs {
		if !need.TakesSlot() {
			continue
		}
		v := need.Volume
		h := q.slots.handed[v.Driver]
		do(v, &h, q.snapshot.Volume(v).OnNode(q.node) != nil && !q.slots.leaves[v])
		q.slots.handed[v.Driver] = h
	}
}

// slotsLast reports missing slots only if nothing else is missing: the ticket keeps slots then.
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

// tooFew lists the drivers for which keeping slots would not help: the node has too few.
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

// of is the reason why a ticket for the same volume keeps no slot.
func (w awaiting) of(r Reason) Reason {
	r.Code, r.Node = SlotsNotKept, w.node
	r.Volume, r.Claim, r.Who = w.need.Volume, w.need.Name, w.request.Who
	return r
}

// keptElsewhere returns an earlier ticket that keeps slots at another node for a volume of the request.
// Otherwise tickets for a few volumes would fill every node.
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

// firstElsewhere is the first in rank of the tickets that keep slots for a volume at other nodes.
func (q *Queue) firstElsewhere(id ledger.VolumeID) awaiting {
	var first awaiting
	v := q.snapshot.Volume(id)
	if v == nil {
		return first
	}
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
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
