// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// BindPast binds a pod as a scheduler without Moorage.
func (w *World) BindPast(uid string, n ledger.NodeName) {
	p, exists := w.Pod(uid)
	if !exists {
		return
	}
	p.Node = n
	w.Judge.bound = with(w.Judge.bound, uid, true)
	w.Put(p)
}

// Bound says whether a pod was bound since the world began.
func (j *Judge) Bound(uid string) bool { return j.bound[uid] }

// TakenPast says whether a bind takes a volume's slot at a node, whether one ever brought it there, or an
// unanswered creation may have, and whether the volume has left the node.
func (j *Judge) TakenPast(at At) (taken, been, left bool) {
	return j.taken[at], j.been[at], j.leavers[at]
}

// Excuses says whether a grant, decided on at a version of the world or later, ignores a slot that a bind
// has taken.
func (j *Judge) Excuses(version int64, at At) bool {
	since, counts := j.counts[at]
	return j.taken[at] && (!counts || version <= since)
}

// Unanswered takes in that a creation got no answer: its sender counts the volume at the node until it
// learns more. If binds have filled the node, a grant for that volume needs no other slot, also if they
// come later (Foreign).
func (j *Judge) Unanswered(w *World, a ledger.Attachment) {
	if v, ok := w.Source(a); ok && (len(j.bound) > 0 || j.Binds) {
		j.been = with(j.been, At{v, a.Node}, true)
	}
}

// podPast keeps the slots of bound pods, for volumes without anything of Moorage's at the node.
func (j *Judge) podPast(w *World, p ledger.Pod) {
	if !j.bound[p.UID] {
		return
	}
	there := w.booked(p.Node)
	for _, v := range j.UsedBy(w, p) {
		at := At{v, p.Node}
		j.been = with(j.been, at, true)
		if j.used(w, at) && !there[v] {
			j.taken = with(j.taken, at, true)
		}
	}
	for _, v := range p.Volumes { // for an unbound claim the place is kept
		if id, ok := w.claimed(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim}); ok {
			j.been = with(j.been, At{id, p.Node}, true)
		}
	}
	j.leftPast(w)
	j.fills(w, p.Node)
}

// attachedPast: a VolumeAttachment for such a pod also takes its slot, unless a grant has it; also
// after the pod has gone, if its creator does not know that yet.
func (j *Judge) attachedPast(w *World, at At) {
	if len(j.bound) == 0 || w.granted(at.Node)[at.Volume] {
		return
	}
	if j.been[at] && !j.used(w, at) {
		j.taken = with(j.taken, at, true)
	}
	for _, p := range w.PodsAt(at.Node) {
		if j.bound[p.UID] && p.Phase != ledger.PodFinished && slices.Contains(j.UsedBy(w, p), at.Volume) {
			j.taken, j.been = with(j.taken, at, true), with(j.been, at, true)
		}
	}
	j.fills(w, at.Node)
}

// remembers says whether volumes that have left a node matter: pods are bound, or a limit has shrunk; or
// either may happen.
func (j *Judge) remembers(w *World) bool {
	return len(j.bound) > 0 || j.Binds || j.Shrinks || j.shrank || len(j.shrunk(w)) > 0
}

// listsNoMore: a node's lists no longer name volumes, perhaps unknown to the granter.
func (j *Judge) listsNoMore(w *World, was, is ledger.NodeState) {
	if !j.remembers(w) {
		return
	}
	lists := slices.Concat(is.InUse, is.Reported)
	for _, v := range slices.Concat(was.InUse, was.Reported) {
		if !slices.Contains(lists, v) {
			j.leftOver(w, At{v, was.Name})
		}
	}
}

// leftOver: a volume, its granted ticket, or the node's report of it, leaves a node that binds past Moorage
// have taken to its limit, or may still. The granter may not know that yet, and needs no other slot for it
// there.
func (j *Judge) leftOver(w *World, at At) {
	if !j.remembers(w) || at.Volume.IsZero() {
		return
	}
	j.leavers = with(j.leavers, at, true)
	j.fills(w, at.Node)
}

// fills: at a node that binds have taken to its limit, the granter may still count volumes that have
// left it, also if they left before the bind.
func (j *Judge) fills(w *World, n ledger.NodeName) {
	var full []At
	for at := range j.leavers {
		if at.Node == n && !j.been[at] && j.fullWithout(w, at) {
			full = append(full, at)
		}
	}
	for _, at := range full {
		j.been = with(j.been, at, true)
	}
}

// fullWithout says whether the volumes bound to a node, or ever there beside binds, leave no slot for a
// volume.
func (j *Judge) fullWithout(w *World, at At) bool {
	rest, bound := int32(0), w.bound(at.Node)
	for v := range bound {
		if v.Driver == at.Volume.Driver && v != at.Volume {
			rest++
		}
	}
	for other := range j.been {
		if other.Node == at.Node && other.Volume.Driver == at.Volume.Driver && other.Volume != at.Volume && !bound[other.Volume] {
			rest++
		}
	}
	return len(j.bound) > 0 && rest >= j.limits[slots{at.Node, at.Volume.Driver}]
}

// everAt says whether the judge knows that a volume was at a node beside binds.
func (j *Judge) everAt(w *World, at At) bool { return w.marked(j.been, at) }

// marked says whether a volume at a node is among these, also as its claim from before.
func (w *World) marked(marks map[At]bool, at At) bool {
	if marks[at] {
		return true
	}
	for _, e := range w.all[Claims] {
		c := e.(ledger.Claim)
		if id, ok := w.Resolve(c.Key); ok && id == at.Volume && marks[At{ledger.UnboundClaim(at.Volume.Driver, c.UID), at.Node}] {
			return true
		}
	}
	return false
}

// Marks says whether AllKnown may end anything.
func (j *Judge) Marks(w *World) bool {
	return len(j.been) > 0 || len(j.leavers) > 0 || len(j.shrunk(w)) > 0
}

// shrunk are the present limits that were higher once.
func (j *Judge) shrunk(w *World) map[slots]int32 {
	var list map[slots]int32
	for at, highest := range j.limits {
		n, _ := w.Drivers(at.node)
		for _, d := range n.Drivers {
			if d.Name == at.driver && limitOf(d) < highest {
				list = with(list, at, limitOf(d))
			}
		}
	}
	return list
}

// AllKnown is for when the granter has complete facts and no earlier decision in flight: a volume that has
// left a node by now needs a slot to come back, unless the granter remembers it there; and a shrunk limit
// counts.
func (j *Judge) AllKnown(w *World, counts func(At) bool) {
	for at, limit := range j.shrunk(w) {
		j.limits, j.shrank = with(j.limits, at, limit), true
	}
	for _, marks := range []*map[At]bool{&j.been, &j.leavers} {
		for at := range *marks {
			if !w.bound(at.Node)[at.Volume] && !counts(at) {
				*marks = without(*marks, at)
			}
		}
	}
}

// leftPast forgets unused slots.
func (j *Judge) leftPast(w *World) {
	for at := range j.taken {
		if !w.bound(at.Node)[at.Volume] {
			j.taken, j.counts = without(j.taken, at), without(j.counts, at)
		}
	}
}

// knowsPast: the granter knows of a slot that a bind has taken: it has granted that volume there, or made
// its VolumeAttachment. From now on the slot counts, except for a grant in flight: an earlier decision, or,
// if that is unknown, one for a ticket that has not changed since.
func (j *Judge) knowsPast(w *World, at At) {
	if _, counts := j.counts[at]; !counts && j.taken[at] {
		j.counts = with(j.counts, at, w.Version())
	}
}

// accountable are the volumes for which a ticket's granter is responsible at its node: the booked ones,
// except those of binds that it may not have known when it decided.
func (j *Judge) accountable(w *World, t ledger.Ticket, decided int64) map[ledger.VolumeID]bool {
	counted := w.booked(t.Node)
	for v := range counted {
		if j.Excuses(decided, At{v, t.Node}) {
			delete(counted, v)
		}
	}
	return counted
}
