// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"github.com/moorage-dev/moorage/internal/ledger"
)

// room says which drivers have no slot left at the node for the request. A
// volume that is already at the node has its slot: own attachments are never
// counted twice.
func (w view) room() []Reason {
	node := w.s.Node(w.n)
	var reasons []Reason
	for i, need := range w.r.Needs {
		driver := need.Volume.Driver
		if !w.takesSlot(need) || w.sameDriver(i) {
			continue
		}
		if r, full := w.full(node, driver); full {
			reasons = append(reasons, r)
		}
	}
	return reasons
}

func (w view) takesSlot(need Need) bool {
	return !need.Volume.IsZero() && !need.Volume.NoAttach() && w.s.AttachRequired(need.Volume.Driver)
}

// sameDriver says whether an earlier need has the driver of need i, which is
// then already judged.
func (w view) sameDriver(i int) bool {
	for _, need := range w.r.Needs[:i] {
		if w.takesSlot(need) && need.Volume.Driver == w.r.Needs[i].Volume.Driver {
			return true
		}
	}
	return false
}

// full says whether a driver lacks a slot for the request's new volumes.
func (w view) full(node *ledger.Node, driver string) (Reason, bool) {
	own, fresh := w.ownSlots(driver)
	if fresh == 0 {
		return Reason{}, false
	}
	reason := Reason{Code: NoFreeSlot, Driver: driver, Node: w.n}
	state := node.Driver(driver)
	policy := PolicyFor(w.s, driver, "")
	if !state.Registered {
		reason.Code = DriverNotRegistered
		return reason, !policy.AllowNoDriver
	}
	if state.Exhausted {
		reason.Code = NodeExhausted
		return reason, true
	}
	limit := Limit(state, policy)
	if limit == ledger.NoLimit {
		return Reason{}, false
	}
	used := state.Used - own + w.dryRun(driver) - w.outranked(node, driver)
	reason.Used, reason.Limit = used, limit
	return reason, used+fresh > limit
}

// Limit is how many slots of a driver a node has under a policy: the
// CSINode's count or the policy's, whichever is less, minus the headroom.
func Limit(state ledger.NodeDriver, policy ledger.Policy) int32 {
	limit := state.Limit
	if policy.MaxSlots != nil && (limit == ledger.NoLimit || *policy.MaxSlots < limit) {
		limit = *policy.MaxSlots
	}
	if limit == ledger.NoLimit {
		return ledger.NoLimit
	}
	return max(0, limit-policy.Headroom)
}

// ownSlots splits the request's volumes of a driver: own are those whose place
// at the node exists only for the request itself, fresh those for which
// nothing else keeps a slot there yet.
func (w view) ownSlots(driver string) (own, fresh int32) {
	for _, need := range w.r.Needs {
		if need.Volume.Driver != driver || !w.takesSlot(need) {
			continue
		}
		p := w.s.Volume(need.Volume).Place(w.n)
		switch {
		case p == nil:
			fresh++
		case w.onlyFor(p, w.r.owns):
			own++
			fresh++
		case w.freed(p):
			fresh++ // dryRun counts it as let go
		}
	}
	return own, fresh
}

// onlyFor says whether nothing but the users that match binds a place.
func (w view) onlyFor(p *ledger.Place, match func(ledger.User) bool) bool {
	if len(p.Attachments) > 0 || p.Reported || p.InUse {
		return false
	}
	for _, u := range p.Users {
		if !match(u) {
			return false
		}
	}
	return true
}

// freed says whether a dry run takes every user from a place. The slot comes
// free when the detach is confirmed; a preemption may count on that.
func (w view) freed(p *ledger.Place) bool {
	d := w.s.Delta()
	if d == nil || len(p.Users) == 0 {
		return false
	}
	for _, u := range p.Users {
		if u.Pod == "" && d.Removed[w.s.Ticket(u.Ticket).PodUID()] || d.Removed[u.Pod] {
			continue
		}
		return false
	}
	return true
}

// dryRun is by how much a dry run changes the slots a driver uses at the node.
func (w view) dryRun(driver string) int32 {
	d := w.s.Delta()
	if d == nil {
		return 0
	}
	seen := map[ledger.VolumeID]bool{}
	change := int32(0)
	for uid := range d.Removed {
		for _, v := range w.s.PodAt(uid) {
			if p := w.s.Volume(v).Place(w.n); v.Driver == driver && !seen[v] && p != nil && w.freed(p) {
				seen[v] = true
				change--
			}
		}
	}
	for uid, node := range d.Added {
		if node == w.n && uid != w.r.Pod {
			change += w.added(uid, driver, seen)
		}
	}
	return change
}

// added counts the slots that a pod tried at the node would take: those of
// volumes that are neither there yet nor the request's own.
func (w view) added(uid, driver string, seen map[ledger.VolumeID]bool) int32 {
	p := w.s.Pod(uid)
	if p == nil {
		return 0
	}
	change := int32(0)
	for _, need := range PodRequest(w.s, p).Needs {
		v := need.Volume
		if v.Driver != driver || !w.takesSlot(need) || w.needs(v) {
			continue
		}
		place := w.s.Volume(v).Place(w.n)
		if free := place == nil && !seen[v] || place != nil && seen[v]; free {
			seen[v] = !seen[v]
			change++
		}
	}
	return change
}

func (w view) needs(v ledger.VolumeID) bool {
	for _, need := range w.r.Needs {
		if need.Volume == v {
			return true
		}
	}
	return false
}

// outranked is how many slots at the node are taken by nothing but tickets
// that are not granted and rank after the request. Only a grant may take them.
func (w view) outranked(node *ledger.Node, driver string) int32 {
	if !w.granting || node == nil || len(node.Tickets) == 0 {
		return 0
	}
	later := func(u ledger.User) bool {
		return !w.r.owns(u) && stand(w.s, u) == asking && rank(requestOf(w.s, u), w.r) > 0
	}
	seen := map[ledger.VolumeID]bool{}
	count := int32(0)
	for _, id := range node.Tickets {
		for _, v := range w.s.TicketAt(id) {
			p := w.s.Volume(v).Place(w.n)
			if v.Driver == driver && !seen[v] && !w.needs(v) && p != nil && w.onlyFor(p, later) {
				seen[v] = true
				count++
			}
		}
	}
	return count
}
