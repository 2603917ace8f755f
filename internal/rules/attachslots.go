// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// atAttach is the Detail of NoFreeSlot for a bound pod that waits for the slot.
const atAttach = "attach"

// slotsAgain is the pause after leaving a free slot to another volume, whose user may go without an event
// at this node.
const slotsAgain = 5 * time.Second

// keepsToLimit says whether a volume waits for a slot before its attach: only for pods that opted in and
// have not run there yet. Else the driver decides.
func (p *attachPlan) keepsToLimit(place *ledger.VolumeOnNode) bool {
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

// slotLimit is 0 if the volume does not wait for a slot.
func (p *attachPlan) slotLimit(node *ledger.Node, place *ledger.VolumeOnNode) int32 {
	driver := p.volume.ID.Driver
	limit := Limit(node.Driver(driver), PolicyFor(p.snapshot, driver, ""))
	if limit == ledger.NoLimit || !p.keepsToLimit(place) {
		return 0
	}
	return limit
}

// noSlot: attachments (also if deleting or in flight), granted tickets and earlier bound pods take slots.
func (p *attachPlan) noSlot(node *ledger.Node, place *ledger.VolumeOnNode) []Reason {
	if p.anySlot || !p.required || !p.keepsToLimit(place) {
		return nil
	}
	state, policy := node.Driver(p.volume.ID.Driver), PolicyFor(p.snapshot, p.volume.ID.Driver, "")
	limit := Limit(state, policy)
	if limit == ledger.NoLimit || state.Taken() <= limit {
		return nil // each wanted volume has a slot
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

// getsSlot says whether a free slot is for this volume. Granted tickets come first. Each pod in order gets
// slots for all of its volumes of all drivers, or none: two pods with half of their slots would wait
// forever. A pod that can't attach a volume yet leaves its slots to the next.
func (p *attachPlan) getsSlot(node *ledger.Node) bool {
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
		place := v.OnNode(node.Name)
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
			return !p.attachesNow(v, node) || !retries && v.OnNode(node.Name).CreateFailed
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

type freeSlots struct {
	snapshot ledger.Snapshot
	node     *ledger.Node
	left     map[string]int32
}

// of may be ledger.NoLimit.
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

// attachesNow says whether a volume could be attached to a node now, if it gets the slot that it needs.
func (p *attachPlan) attachesNow(v *ledger.Volume, node *ledger.Node) bool {
	place, o := v.OnNode(node.Name), p.planner(p.snapshot, v, p.now)
	o.anySlot, o.hold = true, o.asHeld()
	return !bars(p.snapshot, v, place) && o.wanted(place) && o.mayCreate(node, place)
}

// compareBound orders contending bound pods: first those that opted in, then by the time of binding. No two
// compare equal.
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

// AwaitSlots lists the unattached volumes of a node's users with a limited driver. A free slot may let them
// attach.
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
		if place := s.Volume(id).OnNode(name); full[id.Driver] && !place.OccupiesSlotWithoutUse() && place.UsedByPod() {
			list = append(list, id)
		}
	}
	return list
}
