// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// ExhaustedFor is how long a node is full for a driver after ResourceExhausted, unless before its CSINode
// changes, or a volume is detached or attached there. The cause may end without a sign.
const ExhaustedFor = time.Minute

// Lapse tells a ledger that time has passed, as often as waiters should hear of ended times.
func Lapse(now time.Time) ledger.Event {
	return ledger.RefusalsOver{Until: now.Add(-ExhaustedFor)}
}

// room lists the drivers without a free slot at the node, or that can't attach there. A volume at the node
// has its slot already.
func (w evaluation) room() []Reason {
	node := w.snapshot.Node(w.node)
	var reasons []Reason
	for driver := range w.drivers() {
		if r, full := w.full(node, driver); full {
			reasons = append(reasons, r)
		}
	}
	return reasons
}

// Attaches says whether the need gets a VolumeAttachment: not without a volume, for iSCSI or FC, or with
// attachRequired: false.
func (n Need) Attaches(s ledger.Snapshot) bool {
	return n.TakesSlot() && s.AttachRequired(n.Volume.Driver)
}

// TakesSlot says whether the need takes a slot. Each CSI volume does: a driver may have a limit and
// attachRequired: false.
func (n Need) TakesSlot() bool { return !n.Volume.IsZero() && !n.Volume.NoAttach() }

// drivers yields each driver with slots for the request, once, in the order of its needs.
func (w evaluation) drivers() iter.Seq[string] {
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

// full says whether a driver lacks a slot for the request's new volumes, or can't attach at the node at
// all.
//
//	Invariant: slots after = |places that take one − those that only the
//	request, a dry run or an outranked ticket keeps| + |the request's volumes
//	among none of the rest|
//
// It is computed from the running count, the request, and the dry run or the slots handed out to earlier
// pending tickets of the node (Queue), never from the node's other pods or attachments.
func (w evaluation) full(node *ledger.Node, driver string) (Reason, bool) {
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

// attachesItself: by a missing annotation, the kubelet attaches by itself. It can't with a CSI volume
// (k8s.io/kubernetes pkg/volume/csi, csiAttacher.Attach). If no kubelet has written the Node, as in a
// benchmark, the annotation says nothing.
func attachesItself(n *ledger.Node) bool { return n != nil && n.Exists && n.Reporting && !n.Managed }

// Limit is a node's slots of a driver: the lesser of the CSINode's and the policy's count, minus the
// headroom.
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

// fresh counts volumes without an own slot at the node; missing counts those without any slot there, which
// the running count omits.
func (w evaluation) fresh(driver string) (fresh, missing int32) {
	for _, need := range w.request.Needs {
		if need.Volume.Driver != driver || !need.TakesSlot() {
			continue
		}
		p := w.snapshot.Volume(need.Volume).OnNode(w.node)
		switch {
		case w.queue != nil && w.queue.slots.given[need.Volume]: // with an earlier user in rank
		case !w.takes(need.Volume, p):
			fresh++
			missing++
		case !w.confirmed(p, driver):
			fresh++
		}
	}
	return fresh, missing
}

func (w evaluation) takes(v ledger.VolumeID, p *ledger.VolumeOnNode) bool {
	if w.queue == nil {
		return p.TakesSlot()
	}
	return w.queue.slots.takes(v, p)
}

// confirmed says whether a place has a slot that is not the request's. volumesInUse is not enough: it also
// lists volumes that pods wait for. Pending tickets have slots only while there are enough; otherwise a
// request that joins a ticket is refused with it.
func (w evaluation) confirmed(p *ledger.VolumeOnNode, driver string) bool {
	if p.OccupiesSlotWithoutUse() {
		return true
	}
	// A pod that waits for a slot has none to share with a ticket.
	notOfPods := w.request.Pod == "" && w.pastLimit(driver)
	return slices.ContainsFunc(w.queue.blockers(p, w.request), func(u ledger.User) bool {
		return !w.request.owns(u) && claimStateOf(w.snapshot, u) == active && !(notOfPods && u.Pod != "")
	})
}

// pastLimit says whether more volumes of a driver are wanted at the node than it has slots.
func (w evaluation) pastLimit(driver string) bool {
	state := w.snapshot.Node(w.node).Driver(driver)
	limit := Limit(state, PolicyFor(w.snapshot, driver, ""))
	return limit != ledger.NoLimit && state.Taken() > limit
}

// tryout is the change in a driver's used slots at the node by a dry run.
func (w evaluation) tryout(node *ledger.Node, driver string) int32 {
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
		p := w.snapshot.Volume(v).OnNode(w.node)
		if v.Driver == driver && p.TakesSlot() && !kept[v] && w.vacant(p) {
			kept[v] = true // counted
			change--
		}
	}
	return change
}

// added adds the pod's volumes to those that stay.
func (w evaluation) added(uid, driver string, kept map[ledger.VolumeID]bool) int32 {
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
		if !w.snapshot.Volume(need.Volume).OnNode(w.node).TakesSlot() {
			change++
		}
	}
	return change
}

// leavers lists the volumes with a possibly vacant place at the node in this view.
func (w evaluation) leavers(node *ledger.Node) []ledger.VolumeID {
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

// vacant says whether an unneeded place would come free. Its attachment goes with its last user, in time; a
// preemption may count on that.
func (w evaluation) vacant(p *ledger.VolumeOnNode) bool {
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
