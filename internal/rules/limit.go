// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// ExhaustedFor is how long a node is full for a driver that answered
// ResourceExhausted there, unless its CSINode changes, a volume leaves or one is
// attached before. What filled the node may go without a sign: other devices in
// its slots, a quota, calls that came too fast. A full node so costs whoever
// waits one attempt in that time, and a driver's bad moment keeps nobody away
// for longer.
const ExhaustedFor = time.Minute

// Lapse is what the passing of time is to a ledger. It is to be applied as often
// as whoever waits for a time to be over is to hear of it.
func Lapse(now time.Time) ledger.Event {
	return ledger.RefusalsOver{Until: now.Add(-ExhaustedFor)}
}

// room says which drivers have no slot left at the node for the request, or can't attach there. A
// volume that is already at the node has its slot: own attachments are never
// counted twice.
func (w view) room() []Reason {
	node := w.snapshot.Node(w.node)
	var reasons []Reason
	for driver := range w.drivers() {
		if r, full := w.full(node, driver); full {
			reasons = append(reasons, r)
		}
	}
	return reasons
}

// Attaches says whether the need gets a VolumeAttachment. A need that leads to no volume gets none,
// nor does a volume of iSCSI or FC, or of a driver that says attachRequired: false.
func (n Need) Attaches(s ledger.Snapshot) bool {
	return n.TakesSlot() && s.AttachRequired(n.Volume.Driver)
}

// TakesSlot says whether the need takes a slot of its driver. Each volume of a CSI driver does:
// a driver may state a limit and say attachRequired: false.
func (n Need) TakesSlot() bool { return !n.Volume.IsZero() && !n.Volume.NoAttach() }

// drivers are those of which the request needs slots, each once, in the order of its needs.
func (w view) drivers() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, need := range w.request.Needs {
			before := slices.ContainsFunc(w.request.Needs[:i], func(b Need) bool {
				return b.Volume.Driver == need.Volume.Driver && b.TakesSlot()
			})
			if !before && need.TakesSlot() && !yield(need.Volume.Driver) {
				return
			}
		}
	}
}

// full says whether a driver lacks a slot for the request's new volumes, or can't attach at the node at all.
//
//	Invariant: slots after = |places that take one − those that only the
//	request, a dry run or an outranked ticket keeps| + |the request's volumes
//	among none of the rest|
//
// computed from the running count, the request and the dry run, or what has been
// handed out to the node's pending tickets that rank before (Queue), and never from
// the node's other pods or attachments.
func (w view) full(node *ledger.Node, driver string) (Reason, bool) {
	reason := Reason{Code: NoFreeSlot, Driver: driver, Node: w.node}
	state := node.Driver(driver)
	if !state.Registered && (!w.request.ofPod() || w.snapshot.NeedsNode(driver)) {
		reason.Code = DriverNotRegistered
		return reason, true
	}
	if state.Registered && w.snapshot.AttachRequired(driver) && attachesItself(node) {
		reason.Code = NodeUnmanaged
		return reason, true
	}
	fresh, missing := w.fresh(driver)
	if fresh == 0 {
		return Reason{}, false
	}
	policy := PolicyFor(w.snapshot, driver, "")
	if state.Exhausted {
		reason.Code = NodeExhausted
		return reason, true
	}
	limit := Limit(state, policy)
	if limit == ledger.NoLimit {
		return Reason{}, false
	}
	var after int32
	if w.queue == nil {
		after = state.Taken() + missing + w.tryout(node, driver)
		if after > limit {
			after -= w.onlyBehind(node, driver)
		}
		reason.Used = after - fresh
	} else {
		after = w.queue.slots.used(state) + missing
		reason.Used = w.queue.slots.told(state, after-fresh, limit)
	}
	reason.Limit, reason.Needed = limit, fresh
	if limit != state.Limit {
		reason.Policy = policy.Name
	}
	return reason, after > limit
}

// attachesItself says whether a node's kubelet attaches by itself, as it says by the annotation that it leaves
// out. No kubelet can do that with a CSI volume (k8s.io/kubernetes pkg/volume/csi, csiAttacher.Attach). A Node that
// no kubelet has written, such as one of a benchmark, says nothing by having no annotation.
func attachesItself(n *ledger.Node) bool { return n != nil && n.Exists && n.Reporting && !n.Managed }

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

// fresh counts the request's volumes of a driver that have no slot at the
// node in their own right, and of these the ones that have none at all there, so
// that the running count misses them.
func (w view) fresh(driver string) (fresh, missing int32) {
	for _, need := range w.request.Needs {
		if need.Volume.Driver != driver || !need.TakesSlot() {
			continue
		}
		p := w.snapshot.Volume(need.Volume).NodeVolume(w.node)
		switch {
		case w.queue != nil && w.queue.slots.given[need.Volume]: // with who ranks before
		case !w.takes(need.Volume, p):
			fresh++
			missing++
		case !w.confirmed(p, driver):
			fresh++
		}
	}
	return fresh, missing
}

// takes says whether a volume has a slot at the node.
func (w view) takes(v ledger.VolumeID, p *ledger.NodeVolume) bool {
	if w.queue == nil {
		return p.TakesSlot()
	}
	return w.queue.slots.takes(v, p)
}

// confirmed says whether a NodeVolume has a slot that is not the request's to get:
// by its attachment or volumesAttached, or by another user who will stay. That the
// node has it in use is not enough: a kubelet says so of what its pods wait for,
// too, and others may have got their slots since they ended. Tickets that are not
// granted have their slots only as long as there are as many: where they are too
// many, who joins one would be refused with it.
func (w view) confirmed(p *ledger.NodeVolume, driver string) bool {
	if p.OccupiesSlotWithoutUse() {
		return true
	}
	// A pod that waits for a slot has none that a ticket could have with it.
	notOfPods := w.request.Pod == "" && w.pastLimit(driver)
	return slices.ContainsFunc(w.queue.blockers(p, w.request), func(u ledger.User) bool {
		return !w.request.owns(u) && claimStateOf(w.snapshot, u) == active && !(notOfPods && u.Pod != "")
	})
}

// pastLimit says whether more volumes of a driver are wanted at the node than it has slots.
func (w view) pastLimit(driver string) bool {
	state := w.snapshot.Node(w.node).Driver(driver)
	limit := Limit(state, PolicyFor(w.snapshot, driver, ""))
	return limit != ledger.NoLimit && state.Taken() > limit
}

// tryout is by how much a dry run changes the slots that a driver uses at the node.
func (w view) tryout(node *ledger.Node, driver string) int32 {
	d := w.snapshot.Delta()
	if d.Empty() && !w.detached {
		return 0
	}
	kept := map[ledger.VolumeID]bool{}
	for _, need := range w.request.Needs {
		kept[need.Volume] = true
	}
	change := int32(0)
	if d != nil {
		for uid, n := range d.Added {
			if n == w.node && uid != w.request.Pod {
				change += w.added(uid, driver, kept)
			}
		}
	}
	for _, v := range w.leavers(node) {
		p := w.snapshot.Volume(v).NodeVolume(w.node)
		if v.Driver == driver && p.TakesSlot() && !kept[v] && w.vacant(p) {
			kept[v] = true // counted
			change--
		}
	}
	return change
}

// added counts the slots that a pod tried at the node would take, and adds
// its volumes to those that stay.
func (w view) added(uid, driver string, kept map[ledger.VolumeID]bool) int32 {
	p := w.snapshot.Pod(uid)
	if p == nil {
		return 0
	}
	change := int32(0)
	for _, need := range PodRequest(w.snapshot, p).Needs {
		if need.Volume.Driver != driver || !need.TakesSlot() || kept[need.Volume] {
			continue
		}
		kept[need.Volume] = true
		if !w.snapshot.Volume(need.Volume).NodeVolume(w.node).TakesSlot() {
			change++
		}
	}
	return change
}

// leavers lists the volumes whose place at the node may be vacant in this view.
func (w view) leavers(node *ledger.Node) []ledger.VolumeID {
	var list []ledger.VolumeID
	if d := w.snapshot.Delta(); d != nil {
		for uid := range d.Removed {
			list = append(list, w.snapshot.PodAt(uid)...)
		}
	}
	if w.detached {
		list = append(list, node.At()...)
	}
	return list
}

// vacant says whether a NodeVolume that the request does not need would come free:
// all its users are the request's own, taken away by a dry run, or wait without a slot.
// An attachment goes with the last of them who has it, in time; a preemption may count on
// that.
func (w view) vacant(p *ledger.NodeVolume) bool {
	leaves := w.detached || !p.OccupiesSlot()
	for _, u := range p.Users {
		st := claimStateOf(w.snapshot, u)
		switch {
		case w.request.owns(u), st == noClaim, st == terminating && w.detached:
			leaves = true
		case st == requested && !w.snapshot.Ticket(u.Ticket).KeepsSlots():
		default:
			return false
		}
	}
	return leaves
}
