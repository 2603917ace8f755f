// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"maps"
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
		st := claimStateOf(p.snapshot, u)
		if u.Pod == "" {
			return st == active
		}
		pod := p.snapshot.Pod(u.Pod)
		return st == active && (pod.OptedOut || pod.Started)
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
	if limit > state.Occupied {
		if p.getsSlot(node) {
			return nil
		}
		p.recheck(slotsAgain)
	}
	reason := Reason{Code: NoFreeSlot, Detail: atAttach, Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Driver: state.Name, Node: node.Name, Used: state.Occupied, Limit: limit}
	if limit != state.Limit {
		reason.Policy = policy.Name
	}
	return []Reason{reason}
}

// getsSlot says whether a free slot of a node is for this volume. Granted tickets get theirs first. Then each pod, in
// their order, gets slots for all of its volumes, of all drivers, or none: two pods that have a slot each, and need
// another one each, would wait for ever. A pod with a volume that can't be attached yet, or whose creation has failed
// and is to be tried again, leaves its slots to the next pod.
func (p *planner) getsSlot(node *ledger.Node) bool {
	free := freeSlots{snapshot: p.snapshot, node: node, left: map[string]int32{}}
	given, lacking := map[ledger.VolumeID]bool{}, map[string][]*ledger.Volume{}
	give := func(v *ledger.Volume) {
		if !given[v.ID] {
			given[v.ID] = true
			free.take(v.ID.Driver)
		}
	}
	for _, id := range node.At() {
		v := p.snapshot.Volume(id)
		place := v.NodeVolume(node.Name)
		if place.OccupiesSlotWithoutUse() || id.NoAttach() || !p.snapshot.AttachRequired(id.Driver) {
			continue
		}
		for _, u := range place.Users {
			switch {
			case claimStateOf(p.snapshot, u) != active:
			case u.Pod != "":
				lacking[u.Pod] = append(lacking[u.Pod], v)
			case !place.CreateFailed:
				give(v)
			}
		}
	}
	for _, uid := range slices.SortedFunc(maps.Keys(lacking), func(a, b string) int { return compareBound(p.snapshot.Pod(a), p.snapshot.Pod(b)) }) {
		list := slices.DeleteFunc(lacking[uid], func(v *ledger.Volume) bool { return given[v.ID] })
		retries := slices.ContainsFunc(list, func(v *ledger.Volume) bool { return v.ID == p.volume.ID })
		waits := func(v *ledger.Volume) bool {
			return !p.attachesNow(v, node) || !retries && v.NodeVolume(node.Name).CreateFailed
		}
		if !free.enough(list) || slices.ContainsFunc(list, waits) {
			continue
		}
		for _, v := range list {
			give(v)
		}
		if given[p.volume.ID] {
			return true
		}
	}
	return false
}

// freeSlots counts the slots of a node's drivers that nobody has yet.
type freeSlots struct {
	snapshot ledger.Snapshot
	node     *ledger.Node
	left     map[string]int32
}

// of returns how many slots of a driver are left; ledger.NoLimit: it has no limit.
func (f freeSlots) of(driver string) int32 {
	left, known := f.left[driver]
	if !known {
		state := f.node.Driver(driver)
		if left = Limit(state, PolicyFor(f.snapshot, driver, "")); left != ledger.NoLimit {
			left = max(0, left-state.Occupied)
		}
		f.left[driver] = left
	}
	return left
}

func (f freeSlots) take(driver string) {
	if left := f.of(driver); left > 0 {
		f.left[driver] = left - 1
	}
}

// enough says whether there is a slot for each of several volumes.
func (f freeSlots) enough(list []*ledger.Volume) bool {
	needed := map[string]int32{}
	for _, v := range list {
		needed[v.ID.Driver]++
	}
	for driver, n := range needed {
		if left := f.of(driver); left != ledger.NoLimit && left < n {
			return false
		}
	}
	return true
}

// attachesNow says whether a volume could be attached to a node now, if there is a slot that it has to wait for.
func (p *planner) attachesNow(v *ledger.Volume, node *ledger.Node) bool {
	place, o := v.NodeVolume(node.Name), p.planner(p.snapshot, v, p.now)
	o.anySlot, o.hold = true, hold(v)
	return !bars(p.snapshot, v, place) && o.wanted(place) && o.mayCreate(node, place)
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
