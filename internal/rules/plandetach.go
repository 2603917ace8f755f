// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// release plans the next step that takes the volume from a node that does not want it: the safe detach
// (docs/internals/invariants.md, I3), one step at a time.
func (p *planner) release(place *ledger.NodeVolume) {
	va, node := p.own(place), p.snapshot.Node(place.Node)
	if p.Cooperative {
		p.detachUnreported(node, place, va)
		return
	}
	outlived := place.MayBeInUse() && (node == nil || !node.Exists) // the last report of a deleted node
	open := p.reportOpen(node, place)
	if va == nil && !place.Reported && !outlived && !open && !p.unproved(place) {
		return
	}
	p.removePods(node, place)
	if open {
		// A kubelet with a pod for the volume lists it in use, reported or not.
		step := p.leaving(node, place, nil, "")
		step.Do = ProveAbsent
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

// reportOpen says whether only a report with an unknown outcome keeps the volume at a node: a read of the
// Node's volumesAttached settles it.
func (p *planner) reportOpen(node *ledger.Node, place *ledger.NodeVolume) bool {
	return place.ReportSent && !place.Held && node != nil && node.Exists && !p.isUnknown(place)
}

// putBack plans the report of a volume that may be in use at a Ready node that does not list it, for
// example after an abandoned forced detach. A restarting kubelet looks for mounts only of the volumes in
// volumesAttached.
func (p *planner) putBack(node *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment) {
	if va == nil || !va.Attached || va.Deleting || place.Reported {
		return
	}
	if ready(node) && p.mayReport(node) && p.isUnknown(place) && !mayBeOfAnotherMachine(p.snapshot, p.volume, place) {
		p.report(node, place, va)
	}
}

// inhabited says whether a user at a node may use the unwanted volume, or be about to: a pod bound past all
// rules, for which the safe detach would put the volume back; or a granted ticket that was not told that it
// has lost the volume: no kubelet knows its use of the volume.
func (p *planner) inhabited(place *ledger.NodeVolume) bool {
	if !p.required || fenced(p.snapshot, p.volume, place.Node, p.now) {
		return false
	}
	return slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		if t := p.snapshot.Ticket(u.Ticket); u.Pod == "" {
			return t != nil && t.Phase == ledger.TicketGranted
		}
		return claimStateOf(p.snapshot, u) >= terminating
	})
}

// Inhabited says whether a user at a node may use a volume, or be about to: until then no plan takes the
// volume from the node.
func Inhabited(s ledger.Snapshot, id ledger.VolumeID, n ledger.NodeName, now time.Time) bool {
	v := s.Volume(id)
	place := v.NodeVolume(n)
	return place != nil && Arbiter{}.planner(s, v, now).inhabited(place)
}

// awaited says whether an undecided ticket asks for the volume in its place and no user asks for it
// elsewhere: once granted, the ticket finds the volume there.
func (p *planner) awaited(node *ledger.Node, place *ledger.NodeVolume) bool {
	if !p.required || !ready(node) || p.sought(p.hold, place) {
		return false
	}
	return slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return claimStateOf(p.snapshot, u) == requested && !p.snapshot.Ticket(u.Ticket).Waits()
	})
}

// sought says whether an exclusive volume must leave a place for another by the planned hold, or any volume
// because it goes away.
func (p *planner) sought(h ledger.Hold, place *ledger.NodeVolume) bool {
	return p.exclusive && (h.Next.Node != "" || h.Node != place.Node) || !p.lasts()
}

// leaving is a detach step without its action yet.
func (p *planner) leaving(node *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment, rule string) Step {
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
func (p *planner) detach(node *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment, rule string) {
	step := p.leaving(node, place, va, rule)
	proof := place.Proof.Stage
	if place.Proof.Forced && rule == "" {
		proof = ledger.ProofNone
	}
	urgent := func() bool { return rule != "" || p.urgent(p.hold, node, place) }
	switch {
	case va != nil && va.Deleting && !place.Reported:
		return // the attacher's turn
	case place.Reported || va == nil || proof == ledger.ProofNone:
		step.Do, step.Unknown = Unreport, rule == "" && p.isUnknown(place)
		step.Urgent = urgent()
		if rule == "" && !place.Reported && p.unproved(place) {
			step.Do = ProveAbsent // a read settles it: no report is in flight by now
		}
	case rule == "" && p.asksNode(node, place, va):
		return
	case proof == ledger.ProofUnwanted || rule != "" && rule != AfterPodGone && step.Successor == "" || !p.required ||
		step.Successor != "" && p.wanted(place):
		// Pods of a fenced node no longer count, nor pods that need no attachment any more. Pods of a later
		// machine of the node's name count, but not while they wait for the earlier machine to lose the
		// volume (takeBack).
		step.Do, step.Urgent = DeleteAttachment, urgent()
	default:
		step.Do = ConfirmUnwanted
	}
	p.add(step)
}

// delayed is how long an unwanted volume stays at its node: the policy's detachDelay, unless its detach is
// urgent.
func (p *planner) delayed(h ledger.Hold, node *ledger.Node, place *ledger.NodeVolume) time.Duration {
	policy := policyOf(p.snapshot, p.volume)
	since, _ := p.snapshot.Idle(place)
	left := policy.DetachDelay - p.now.Sub(since)
	va := p.own(place)
	if left <= 0 || va == nil || va.Deleting || p.urgent(h, node, place) {
		return 0
	}
	return left
}

// urgent says whether an unwanted volume must leave its node without delay: a user wants it, the node has
// no spare slot, is not ready or is being drained, or the volume goes away.
func (p *planner) urgent(h ledger.Hold, node *ledger.Node, place *ledger.NodeVolume) bool {
	return !ready(node) || node.Draining || !p.required || p.sought(h, place) || p.released() || full(p.snapshot, node.Driver(p.volume.ID.Driver))
}

// released says whether the volume's claim is gone: no user returns for it, and a provisioner deletes it
// only after its detach (external-provisioner).
func (p *planner) released() bool {
	claimed := false
	for _, name := range p.volume.PVs() {
		pv := p.snapshot.PersistentVolume(name)
		if pv == nil || pv.Claim.Name == "" {
			continue
		}
		if c := p.snapshot.Claim(pv.Claim); c != nil && !pv.IsAnothers(*c) {
			return false
		}
		claimed = true
	}
	return claimed
}

// full says whether a driver has no spare slot at a node.
func full(s ledger.Snapshot, state ledger.NodeDriver) bool {
	limit := Limit(state, PolicyFor(s, state.Name, ""))
	return limit != ledger.NoLimit && state.Taken() >= limit
}

// Spare lists the unused volumes at a node without a spare slot. They leave at once, without a detachDelay
// (urgent).
func Spare(s ledger.Snapshot, name ledger.NodeName) []ledger.VolumeID {
	n := s.Node(name)
	if n == nil {
		return nil
	}
	var list []ledger.VolumeID
	for _, state := range n.Drivers {
		if !full(s, state) {
			continue
		}
		for _, id := range n.At() {
			if id.Driver != state.Name {
				continue
			}
			if place := s.Volume(id).NodeVolume(name); place.HasOwn() {
				if _, idle := s.Idle(place); idle {
					list = append(list, id)
				}
			}
		}
	}
	return list
}

// keep writes into the hold until when an unused volume stays at its node. It is written together with the
// end of its last user (lingers), and stays until the volume is detached or used again: by itself it costs
// no write.
func (p *planner) keep(was ledger.Hold, h *ledger.Hold, place *ledger.NodeVolume) {
	if p.Cooperative || len(h.Requesters) > 0 || was.Reason != DetachDelayed && !p.keptAfterTicket(was, *h, place) && p.lingers(place) {
		return
	}
	if p.delayed(*h, p.snapshot.Node(place.Node), place) > 0 {
		since, _ := p.snapshot.Idle(place)
		reason := Reason{
			Code: DetachDelayed, Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node,
			Until: since.Add(policyOf(p.snapshot, p.volume).DetachDelay).Unix(),
		}
		h.Reason, h.Message = reason.Code, reason.Message()
	} else if was.Reason == DetachDelayed && was.Node == h.Node {
		h.Reason, h.Message = was.Reason, was.Message
	}
}

// removePods plans the removal of the terminating pods with the volume at an out-of-service node. Pod
// garbage collection would do it later.
func (p *planner) removePods(node *ledger.Node, place *ledger.NodeVolume) {
	if !abandoned(node) {
		return
	}
	for _, u := range place.Users {
		if u.Pod != "" && claimStateOf(p.snapshot, u) == terminating {
			p.add(Step{Do: RemovePod, Node: place.Node, UID: u.Pod})
		}
	}
}
