// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// detachPlan takes a volume from the nodes that it must leave.
type detachPlan struct{ holdPlan }

// release plans the next step of the safe detach (docs/internals/invariants.md, I3).
func (p *detachPlan) release(place *ledger.VolumeOnNode) {
	va, node := p.own(place), p.snapshot.Node(place.Node)
	if p.Cooperative {
		p.detachUnreported(node, place, va)
		return
	}
	outlived := place.MayBeInUse() && (node == nil || !node.Exists) // a deleted node's last report
	open := p.reportOpen(node, place)
	if va == nil && !place.Reported && !outlived && !open && !p.unproved(place) {
		return
	}
	p.removePods(node, place)
	if open {
		// A kubelet with a pod for the volume lists it in use, reported or not.
		step := p.detachStep(node, place, nil, "")
		step.Kind = ProveAbsent
		p.add(step)
		return
	}
	if p.inhabited(place) || p.awaited(node, place) || p.attachedAnew(place, va) {
		return
	}
	if left := p.delayed(p.hold, node, place); left > 0 {
		p.recheck(left)
		return
	}
	verdict, rule := p.safeToDetach(p.snapshot, p.volume, place, va, p.now)
	if !verdict.Allowed() {
		if f := force(p.snapshot, p.volume, place, p.now); f.Left > 0 {
			p.recheck(f.Left)
		}
		p.askAgain(node, place, va)
		p.putBack(node, place, va)
		return
	}
	switch unknown := rule == "" && p.isUnknown(place); {
	case unknown && p.emptied(place):
		// First the hold says that it is no longer unknown: the next leader need not look again.
	case unknown || p.fenceWritten(place, va, rule):
		p.detach(node, place, va, rule)
	}
}

// reportOpen: only a report with an unknown outcome keeps the volume here. A read settles it.
func (p *detachPlan) reportOpen(node *ledger.Node, place *ledger.VolumeOnNode) bool {
	return place.ReportSent && !place.Held && node != nil && node.Exists && !p.isUnknown(place)
}

// putBack reports a volume that may be in use at a Ready node, for example after an abandoned forced
// detach. A restarting kubelet looks for mounts only of volumes in volumesAttached.
func (p *detachPlan) putBack(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) {
	if va == nil || !va.Attached || va.Deleting || place.Reported {
		return
	}
	if ready(node) && p.mayReport(node) && p.isUnknown(place) && !mayBeOfAnotherMachine(p.snapshot, p.volume, place) {
		p.report(node, place, va)
	}
}

// Inhabited says whether a user at a node may use a volume, or be about to: no plan takes it away.
func Inhabited(s ledger.Snapshot, id ledger.VolumeID, n ledger.NodeName, now time.Time) bool {
	v := s.Volume(id)
	place := v.OnNode(n)
	return place != nil && Arbiter{}.planner(s, v, now).inhabited(place)
}

// detachStep is a detach step without its action yet.
func (p *detachPlan) detachStep(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment, rule string) Step {
	step := Step{Node: place.Node, Rule: rule}
	if rule != "" && former(p.snapshot, p.volume, place, p.now).Former {
		step.Successor = node.SystemUUID
	}
	if va != nil {
		step.Attachment, step.UID, step.Version = va.Name, va.UID, va.Version
	}
	if node != nil && node.Exists {
		step.NodeUID, step.NodeVersion = node.UID, node.Version
		step.WhileReady = rule == "" && ready(node) && mayBeUnlisted(p.volume, place)
	}
	return step
}

// detach plans the step that the proofs so far allow.
func (p *detachPlan) detach(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment, rule string) {
	step := p.detachStep(node, place, va, rule)
	proof := place.Proof.Stage
	if place.Proof.Forced && rule == "" {
		proof = ledger.ProofNone
	}
	urgent := func() bool { return rule != "" || p.urgent(p.hold, node, place) }
	switch {
	case va != nil && va.Deleting && !place.Reported:
		return // the attacher's turn
	case place.Reported || va == nil || proof == ledger.ProofNone:
		step.Kind, step.Unknown = Unreport, rule == "" && p.isUnknown(place)
		step.Urgent = urgent()
		if rule == "" && !place.Reported && p.unproved(place) {
			step.Kind = ProveAbsent // a read settles it: no report is in flight
		}
	case rule == "" && p.asksNode(node, place, va):
		return
	case proof == ledger.ProofUnwanted || rule != "" && rule != AfterPodGone && step.Successor == "" || !p.required ||
		step.Successor != "" && p.wanted(place):
		// Pods of a fenced node don't count, nor pods that need no attachment. Pods of a later machine
		// count, unless they wait for the earlier one (takeBack).
		step.Kind, step.Urgent = DeleteAttachment, urgent()
	default:
		step.Kind = ConfirmUnwanted
	}
	p.add(step)
}

// noSpareSlot says whether a driver has no spare slot at a node.
func noSpareSlot(s ledger.Snapshot, state ledger.NodeDriver) bool {
	limit := Limit(state, PolicyFor(s, state.Name, ""))
	return limit != ledger.NoLimit && state.Taken() >= limit
}

// Spare lists the unused volumes at a node without a spare slot. They leave without a detachDelay (urgent).
func Spare(s ledger.Snapshot, name ledger.NodeName) []ledger.VolumeID {
	n := s.Node(name)
	if n == nil {
		return nil
	}
	var list []ledger.VolumeID
	for _, state := range n.Drivers {
		if !noSpareSlot(s, state) {
			continue
		}
		for _, id := range n.At() {
			if id.Driver != state.Name {
				continue
			}
			if place := s.Volume(id).OnNode(name); place.HasOwn() {
				if _, idle := s.Idle(place); idle {
					list = append(list, id)
				}
			}
		}
	}
	return list
}

// removePods removes terminating pods at an out-of-service node before pod garbage collection would.
func (p *detachPlan) removePods(node *ledger.Node, place *ledger.VolumeOnNode) {
	if !abandoned(node) {
		return
	}
	for _, u := range place.Users {
		if u.Pod != "" && claimStateOf(p.snapshot, u) == terminating {
			p.add(Step{Kind: RemovePod, Node: place.Node, UID: u.Pod})
		}
	}
}

// awaitFence plans a check when time fences a silent node.
func (p *detachPlan) awaitFence(place *ledger.VolumeOnNode) {
	if f := fence(p.snapshot, p.volume, place.Node, p.now); f.Left > 0 {
		p.recheck(f.Left)
	}
}

// In Cooperative mode the attach/detach controller attaches for bound pods, and alone writes
// volumesAttached. It learns of a ticket's attachment only when a pod of that volume is bound to the node,
// or when it restarts; then it deletes it (docs/decisions/0008).
const (
	// otherTurn is how long an unwanted attachment is left to the attach/detach controller, which checks
	// ten times a second.
	otherTurn = 2 * time.Second
	// besideWindow bounds the time from the read of a node's pods to the end of a delete. For a later pod
	// the attach/detach controller checks the attachment after half a second at the earliest
	// (csi_attacher.go, waitForVolumeAttachment), and finds it deleted.
	besideWindow = 400 * time.Millisecond
	// otherLook is how long an ended attachment is not made again. The attach/detach controller that
	// deleted it looks for its name every 7.1 seconds at most, and would take a new one for it: it would
	// attach nothing for two minutes (csi_attacher.go, waitForVolumeDetachment).
	otherLook = 8 * time.Second
)

// detachUnreported takes Moorage's own attachment from a node if the attach/detach controller does not know
// it. For a volume without need of an attachment that a deleted Node named, only a read can end it.
func (p *detachPlan) detachUnreported(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) {
	nothing := va == nil && !place.ReportSent
	if nothing || va != nil && (!va.Ours || va.Deleting) || place.Reported || p.inhabited(place) || p.awaited(node, place) || p.attachedAnew(place, va) {
		return
	}
	verdict, rule := p.safeToDetach(p.snapshot, p.volume, place, va, p.now)
	if !verdict.Allowed() {
		if f := force(p.snapshot, p.volume, place, p.now); f.Left > 0 {
			p.recheck(f.Left)
		}
		return
	}
	since, _ := p.snapshot.Idle(place)
	if left := otherTurn - p.now.Sub(since); left > 0 {
		p.recheck(left)
		return
	}
	step := p.detachStep(node, place, va, rule)
	switch place.Proof.Stage {
	case ledger.ProofNone:
		step.Kind = ProveAbsent
	case ledger.ProofUnwanted:
		step.Kind, step.Within = DeleteAttachment, besideWindow
	default:
		step.Kind = ConfirmUnwanted
	}
	p.add(step)
}

func (p *detachPlan) report(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) {
	if p.saysRule(place) {
		return // first the hold says that the rule has ended
	}
	if p.forgetsUnknown(place) {
		return // first the hold says that its kubelet may have forgotten it
	}
	if p.exclusive && hold(p.volume).Node == place.Node && !p.namesNode(hold(p.volume)) {
		return // first the hold names this Node and boot: see ledger.Snapshot.Unknown
	}
	step := Step{Kind: Report, Node: place.Node, NodeUID: node.UID}
	if va != nil {
		step.Attachment, step.UID, step.Version = va.Name, va.UID, va.Version
	}
	p.add(step)
}

// mayReport says whether Moorage writes the volumesAttached of a node.
func (p *detachPlan) mayReport(n *ledger.Node) bool { return managed(n) && !p.Cooperative }

// saysRule: a deleted hold names no rule, and without a planned reason nothing needs to be taken back.
func (p *detachPlan) saysRule(place *ledger.VolumeOnNode) bool {
	f, _ := p.volume.Hold.Fence(place.Node)
	if f.Rule == "" || p.volume.Hold.Version != "" {
		return f.Rule != ""
	}
	is, needed := p.fence(hold(p.volume), place)
	return needed && is.Rule != ""
}

// forgetsUnknown says whether the next leader would not know that the volume is unknown at a node: the
// planned hold states it and has room, but the written hold does not.
func (p *detachPlan) forgetsUnknown(place *ledger.VolumeOnNode) bool {
	h := hold(p.volume)
	if p.snapshot.DropsHoldBoots() {
		return false // an older definition may drop that too
	}
	f, says := h.Fence(place.Node)
	if !says && len(h.Fences) >= maxFences || !p.isUnknown(place) {
		return false
	}
	if !p.exclusive {
		defer func(before ledger.Hold) { p.hold = before }(p.hold)
		p.hold = p.sharedHold(h) // it may name the node where an exclusive volume was left
	}
	is, needed := p.fence(h, place)
	return needed && (!says || f.SystemUUID != is.SystemUUID || f.BootID != is.BootID)
}

// namesNode: an older definition of VolumeHolds drops the holder's Node and boot.
func (p *detachPlan) namesNode(h ledger.Hold) bool {
	if h.NodeUID != p.hold.NodeUID {
		return false
	}
	return h.BootID == p.hold.BootID || p.hold.BootID == "" || h.BootID == "" && p.snapshot.DropsHoldBoots()
}
