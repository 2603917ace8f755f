// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Slots is how one driver's slots at one node are taken. Used, Kept, Leaving,
// Unknown and Reserved add up to what the controller counts.
type Slots struct {
	Node  string `json:"node"`
	Ready bool   `json:"ready"`
	// NotVisible: nodes may not be listed. Whether this one is ready is not known, and
	// Ready is true.
	NotVisible bool `json:"notVisible,omitempty"`
	// Missing: there is no Node of that name, and volumes may be at its machine all the same.
	// It is not ready, and its free slots are nobody's.
	Missing bool `json:"missing,omitempty"`
	// Cordoned and OutOfService say what keeps new pods away: spec.unschedulable, and
	// the taint node.kubernetes.io/out-of-service.
	Cordoned     bool   `json:"cordoned,omitempty"`
	OutOfService bool   `json:"outOfService,omitempty"`
	Driver       string `json:"driver"`
	// Registered: the node's CSINode lists the driver. Without that nothing is
	// placed there.
	Registered bool `json:"registered"`
	// Limit is what the CSINode states, and the policy leaves of it; absent
	// when there is none.
	Limit *int32 `json:"limit,omitempty"`
	// Stated is the CSINode's own number.
	Stated *int32 `json:"stated,omitempty"`
	// Exhausted: the driver answered ResourceExhausted, whatever the limit.
	Exhausted bool `json:"exhausted,omitempty"`
	// Used are attached or being attached, and wanted.
	Used int32 `json:"used"`
	// Kept are unwanted and kept by the policy's detachDelay.
	Kept int32 `json:"kept"`
	// Leaving are unwanted and not detached yet.
	Leaving int32 `json:"leaving"`
	// Unknown are those of which nobody can say whether they are used there: they were taken from
	// the node without its word, or it is not ready, was last heard to have them in use, and
	// nobody detaches them.
	Unknown int32 `json:"unknown"`
	// Reserved are promised to tickets and bound pods, or asked for, and not
	// attached yet.
	Reserved int32 `json:"reserved"`
	// Free is how many more volumes may come: 0 at a node that is not ready or gone, whatever
	// its limit; otherwise absent when there is no limit.
	Free    *int32       `json:"free,omitempty"`
	Volumes []SlotVolume `json:"volumes,omitempty"`
	// Leaked, PodsGone and NoAttachment are how many of the driver's volumes the node has
	// itself that are such: see NodeHas. Word is the state of what moorage-node says there,
	// where it is not of today.
	Leaked       int32 `json:"leaked,omitempty"`
	PodsGone     int32 `json:"mountsWithoutPod,omitempty"`
	NoAttachment int32 `json:"withoutAttachment,omitempty"`
	// Unanswered is of how many of the driver's volumes a call to unstage them has no answer.
	Unanswered int32  `json:"unansweredCalls,omitempty"`
	Word       string `json:"word,omitempty"`
}

// Taken is how many slots nobody else can have.
func (s Slots) Taken() int32 { return s.Used + s.Kept + s.Leaving + s.Unknown + s.Reserved }

// SlotVolume is a volume that takes a slot.
type SlotVolume struct {
	Volume string `json:"volume"` // PersistentVolume, or driver^handle
	Claim  string `json:"claim,omitempty"`
	// Slot is Used, Kept, Leaving, Unknown or Reserved.
	Slot  string `json:"slot"`
	State string `json:"state"`
	Users []User `json:"users,omitempty"`
}

// ListSlots lists every node's drivers, sorted. Drivers whose volumes need no
// attachment are left out.
func (w *World) ListSlots() []Slots {
	byDriver := w.slotVolumes()
	var list []Slots
	for n := range w.Snapshot.Nodes() {
		if w.onlyAsked(n) {
			continue
		}
		for _, d := range n.Drivers {
			id := ledger.VolumeID{Driver: d.Name}
			if !w.Snapshot.AttachRequired(d.Name) || id.NoAttach() {
				continue
			}
			slots := w.slots(n, d, byDriver[slotKey{n.Name, d.Name}])
			slots.take(w.NodeWordOf(n.Name))
			list = append(list, slots)
		}
	}
	slices.SortFunc(list, func(a, b Slots) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Driver, b.Driver)) })
	return list
}

// take counts what the node says of its volumes.
func (s *Slots) take(word NodeWord) {
	if word.State != WordSpeaks && word.State != WordAbsent && word.State != WordUnseen {
		s.Word = word.State
	}
	count := func(n *int32, is bool) {
		if is {
			*n++
		}
	}
	for _, has := range word.Has {
		if has.Driver == s.Driver {
			count(&s.Leaked, has.Leaked)
			count(&s.PodsGone, len(has.PodsGone) > 0)
			count(&s.NoAttachment, has.NoAttachment)
		}
	}
	for _, call := range word.Unanswered {
		count(&s.Unanswered, call.Driver == s.Driver)
	}
}

// NodeState is what of a node's own state decides whether volumes come and go there.
type NodeState struct {
	Node  string `json:"node"`
	Ready bool   `json:"ready"`
	// NotVisible: as of Slots.
	NotVisible bool `json:"notVisible,omitempty"`
	// Since is when it was last seen to become not ready.
	Since        time.Time `json:"since,omitzero"`
	Cordoned     bool      `json:"cordoned,omitempty"`
	OutOfService bool      `json:"outOfService,omitempty"`
	// Missing: volumes are bound to it, and there is no such node.
	Missing bool `json:"missing,omitempty"`
}

// ListNodes lists the nodes that there are, and those that a volume is bound to.
func (w *World) ListNodes() []NodeState {
	var list []NodeState
	for n := range w.Snapshot.Nodes() {
		if n.Exists || len(n.Drivers) > 0 && !w.onlyAsked(n) {
			list = append(list, w.nodeState(n.Name))
		}
	}
	slices.SortFunc(list, func(a, b NodeState) int { return cmp.Compare(a.Node, b.Node) })
	return list
}

// onlyAsked says whether there is no node of a name, and nothing but tickets names it.
func (w *World) onlyAsked(n *ledger.Node) bool {
	if n.Exists || w.unseen("nodes") || slices.ContainsFunc(n.Drivers, func(d ledger.NodeDriver) bool { return d.Registered }) {
		return false
	}
	return !slices.ContainsFunc(n.At(), func(id ledger.VolumeID) bool {
		p := w.Snapshot.Volume(id).NodeVolume(n.Name)
		return p.HasAttachments() || p.MayBeMounted() || p.Reported || p.InUse || slices.ContainsFunc(p.Users, func(u ledger.User) bool { return u.Pod != "" })
	})
}

func (w *World) nodeState(name ledger.NodeName) NodeState {
	out := NodeState{Node: string(name), Ready: w.isReady(name), Since: w.notReadySince(name)}
	object := w.nodes[name]
	if object == nil {
		out.NotVisible = w.unseen("nodes")
		out.Ready, out.Missing = out.NotVisible, !out.NotVisible
		return out
	}
	out.Cordoned, out.OutOfService = object.Spec.Unschedulable, outOfService(object)
	return out
}

type slotKey struct {
	node   ledger.NodeName
	driver string
}

func (w *World) slotVolumes() map[slotKey][]SlotVolume {
	all := map[slotKey][]SlotVolume{}
	for v := range w.Snapshot.Volumes() {
		for i := range v.NodeVolumes {
			if !v.NodeVolumes[i].TakesSlot() {
				continue
			}
			key := slotKey{v.NodeVolumes[i].Node, v.ID.Driver}
			all[key] = append(all[key], w.slotVolume(v, &v.NodeVolumes[i]))
		}
	}
	return all
}

func (w *World) slotVolume(v *ledger.Volume, p *ledger.NodeVolume) SlotVolume {
	nv := w.nodeVolume(v, p)
	out := SlotVolume{Volume: v.ID.String(), State: nv.State, Users: nv.Users, Slot: slotUsed}
	if names := v.PVs(); len(names) > 0 {
		out.Volume, out.Claim = names[0], w.claimOf(names[0])
	}
	switch {
	case nv.State == stateReserved, nv.State == stateAsked, nv.State == stateQueued && nv.Attachment == "":
		out.Slot = slotReserved
	case nv.State == stateKept:
		out.Slot = slotKept
	case nv.State == stateUnknown, nv.State == stateInUse && !wanted(nv.Users) && w.silent(p.Node):
		out.Slot = slotUnknown
	case !wanted(nv.Users), nv.State == stateDetaching, nv.State == stateDetachFailed:
		out.Slot = slotLeaving
	}
	return out
}

// The kinds of slots.
const (
	slotUsed     = "Used"
	slotKept     = "Kept"
	slotLeaving  = "Leaving"
	slotUnknown  = "Unknown"
	slotReserved = "Reserved"
)

// silent says whether a node is seen to be not ready or gone, so that no kubelet says what is in use there.
func (w *World) silent(name ledger.NodeName) bool {
	return w.knownNotReady(string(name)) && (w.nodes[name] == nil || !w.kubeletLives(w.nodes[name]))
}

// wanted says whether anybody of a volume's users at a node will stay. A terminating pod still
// uses, but claims nothing.
func wanted(users []User) bool {
	return slices.ContainsFunc(users, func(u User) bool { return u.State == "Bound" || u.State == "Granted" })
}

// kept says whether an unwanted volume waits for its policy's detachDelay: its
// hold says so, or the plan for it is to do nothing but look again.
func (w *World) kept(v *ledger.Volume, p *ledger.NodeVolume) bool {
	if v.Hold != nil && v.Hold.Reason == arbiter.DetachDelayed && v.Hold.Node == p.Node {
		return true
	}
	plan := w.Arbiter.Plan(w.Snapshot, v.ID, w.Now)
	for _, step := range plan.Steps {
		if step.Node == p.Node && step.Do != arbiter.WriteHold {
			return false
		}
	}
	verdict, _ := w.Arbiter.SafeToDetach(w.Snapshot, v, p, w.Now)
	return verdict.Allowed() && !plan.Recheck.IsZero()
}

func (w *World) slots(n *ledger.Node, d ledger.NodeDriver, volumes []SlotVolume) Slots {
	slices.SortFunc(volumes, func(a, b SlotVolume) int { return cmp.Compare(a.Volume, b.Volume) })
	out := Slots{
		Node: string(n.Name), Driver: d.Name, Registered: d.Registered, Exhausted: d.Exhausted, Volumes: volumes,
	}
	state := w.nodeState(n.Name)
	out.Ready, out.NotVisible, out.Cordoned, out.OutOfService, out.Missing = state.Ready, state.NotVisible, state.Cordoned, state.OutOfService, state.Missing
	for _, v := range volumes {
		switch v.Slot {
		case slotUsed:
			out.Used++
		case slotKept:
			out.Kept++
		case slotLeaving:
			out.Leaving++
		case slotUnknown:
			out.Unknown++
		case slotReserved:
			out.Reserved++
		}
	}
	if d.Limit != ledger.NoLimit {
		out.Stated = &d.Limit
	}
	if limit := arbiter.Limit(d, arbiter.PolicyFor(w.Snapshot, d.Name, "")); limit != ledger.NoLimit {
		free := max(0, limit-d.Taken())
		out.Limit, out.Free = &limit, &free
	}
	if !out.Ready {
		out.Free = new(int32)
	}
	return out
}
