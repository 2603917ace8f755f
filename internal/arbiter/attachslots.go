// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"cmp"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// atAttach as the Detail of NoFreeSlot says that a bound pod waits for the slot.
const atAttach = "attach"

// slotsAgain is when a volume is looked at again that leaves a free slot to another one: that one may come to
// want it no more in a way that changes nothing at the node.
const slotsAgain = 5 * time.Second

// keepsToLimit says whether a volume is attached to a node only while the driver has a slot for it there: nobody
// but pods that opted in, and that have not run there yet, wants it. For all others the driver decides.
func (p *planner) keepsToLimit(place *ledger.NodeVolume) bool {
	if p.Cooperative || place.OccupiesSlotWithoutUse() {
		return false
	}
	return !slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		st := standingOf(p.snapshot, u)
		if u.Pod == "" {
			return st == living
		}
		pod := p.snapshot.Pod(u.Pod)
		return st == living && (pod.OptedOut || pod.Started)
	})
}

// slotLimit is how many slots the driver of a volume has at a node, where the volume keeps to that; 0: it does not.
func (p *planner) slotLimit(node *ledger.Node, place *ledger.NodeVolume) int32 {
	driver := p.volume.ID.Driver
	limit := Limit(node.Driver(driver), PolicyFor(p.snapshot, driver, ""))
	if limit == ledger.NoLimit || !p.keepsToLimit(place) {
		return 0
	}
	return limit
}

// noSlot is why a volume gets no attachment at a node where its driver has no slot for it: each is taken by an
// attachment, which may be being deleted or only be sent, is granted to a ticket, or is for a pod that was bound before.
func (p *planner) noSlot(node *ledger.Node, place *ledger.NodeVolume) []Reason {
	if p.anySlot || !p.required || !p.keepsToLimit(place) {
		return nil
	}
	state, policy := node.Driver(p.volume.ID.Driver), PolicyFor(p.snapshot, p.volume.ID.Driver, "")
	limit := Limit(state, policy)
	if limit == ledger.NoLimit || state.Taken() <= limit {
		return nil // each volume that is wanted there has a slot
	}
	used := state.Occupied
	if used < limit {
		if used += p.before(node, place); used < limit { //mutant:attach-past-limit
			return nil
		}
		p.recheck(slotsAgain)
	}
	reason := Reason{Code: NoFreeSlot, Detail: atAttach, Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Driver: state.Name, Node: node.Name, Used: used, Limit: limit}
	if limit != state.Limit {
		reason.Policy = policy.Name
	}
	return []Reason{reason}
}

// before counts the volumes that have no slot at a node yet, and get one before this one: those of granted tickets, and
// those that could be attached now for a pod that ranks before.
func (p *planner) before(node *ledger.Node, place *ledger.NodeVolume) int32 {
	count := int32(0)
	mine := firstPod(p.snapshot, place)
	for _, id := range node.At() {
		if id.Driver != p.volume.ID.Driver || id == p.volume.ID {
			continue
		}
		v := p.snapshot.Volume(id)
		other := v.NodeVolume(node.Name)
		if other.OccupiesSlotWithoutUse() || other.CreateFailed {
			continue
		}
		o := p.planner(p.snapshot, v, p.now)
		o.anySlot, o.hold = true, hold(v)
		switch {
		case slices.ContainsFunc(other.Users, func(u ledger.User) bool { return u.Pod == "" && standingOf(p.snapshot, u) == living }):
			count++
		case !o.keepsToLimit(other), !o.wanted(other), !o.mayCreate(node, other):
		default:
			if first := firstPod(p.snapshot, other); first != nil && (mine == nil || cmp.Or(compareBound(first, mine), id.Compare(p.volume.ID)) < 0) {
				count++
			}
		}
	}
	return count
}

// firstPod is the pod that ranks first of those that want a volume at a node; nil: none does.
func firstPod(s ledger.Snapshot, place *ledger.NodeVolume) *ledger.Pod {
	var first *ledger.Pod
	for _, u := range place.Users {
		if pod := s.Pod(u.Pod); pod != nil && standingOf(s, u) == living && (first == nil || compareBound(pod, first) < 0) {
			first = pod
		}
	}
	return first
}

// compareBound is the order in which bound pods get what they contend for: first those that opted in, then
// those that were bound first. No two pods are alike.
func compareBound(a, b *ledger.Pod) int {
	since := func(p *ledger.Pod) int64 { return cmp.Or(p.Bound, p.Created) }
	rank := func(p *ledger.Pod) int {
		if p.OptedOut {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(since(a), since(b)), cmp.Compare(a.Created, b.Created),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// AwaitSlots lists the volumes that are not attached to a node where somebody wants them, of drivers with a limit: those
// that waited for a slot may be attached once one comes free.
func AwaitSlots(s ledger.Snapshot, name ledger.NodeName) []ledger.VolumeID {
	n := s.Node(name)
	if n == nil {
		return nil
	}
	full := map[string]bool{}
	for _, state := range n.Drivers {
		full[state.Name] = state.Taken() > state.Occupied && Limit(state, PolicyFor(s, state.Name, "")) != ledger.NoLimit
	}
	var list []ledger.VolumeID
	for _, id := range n.At() {
		if place := s.Volume(id).NodeVolume(name); full[id.Driver] && !place.OccupiesSlotWithoutUse() && place.UsedByPod() {
			list = append(list, id)
		}
	}
	return list
}
