// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A volume that a kubelet has forgotten stays staged until it is unstaged. If its policy says so, the
// controller orders the node's moorage-node to do that through the driver (docs/decisions/0053). The danger
// is an unstage that takes effect after a new mount of the volume there. Therefore an order needs a proof
// that the volume is unwanted there; and the volume is not put back into volumesAttached from the order
// until its end, or until a withdrawal whose write proves that no call has begun. A call that has begun
// ends with the driver's success, or with the boot.

// Times of an order.
const (
	// OrderLasts is how long moorage-node may begin an order after its first read.
	OrderLasts = 30 * time.Second
	// firstRepairPause is the pause after the first failed order for a volume. It doubles with each
	// failure, up to longestRepairPause.
	firstRepairPause   = 10 * time.Second
	longestRepairPause = 5 * time.Minute
	// MaxOrders is the number of volumes of a node with orders at a time.
	MaxOrders = 32
)

// repair plans an order to unstage a forgotten volume at a node, or the withdrawal of an outdated order.
func (p *detachPlan) repair(place *ledger.NodeVolume) {
	node := p.snapshot.Node(place.Node)
	if p.Cooperative || node == nil || node.Word == nil || p.volume.ID.NoAttach() {
		return
	}
	order, stands := node.Ordered(p.volume.ID)
	switch {
	case stands && !p.orderLasts(node, place, order):
		p.add(p.unstaging(node, place, WithdrawUnstage))
	case stands || !p.orderable(node, place):
	case node.Unanswered(p.volume.ID), place.Proof.Stage == ledger.ProofUnwanted:
		if p.rested(node) {
			p.add(p.unstaging(node, place, OrderUnstage))
		}
	case p.own(place) != nil && p.rested(node):
		step := p.detachStep(node, place, p.own(place), "")
		step.Do = ConfirmUnwanted
		p.add(step)
	}
}

// rested says whether the pause after failed orders is over.
func (p *detachPlan) rested(node *ledger.Node) bool {
	left := repairPause(node, p.volume.ID, p.now)
	if left <= 0 || p.Hurried {
		return true
	}
	p.recheck(left)
	return false
}

func (p *detachPlan) unstaging(node *ledger.Node, place *ledger.NodeVolume, do Action) Step {
	step := p.detachStep(node, place, p.own(place), "")
	step.Do, step.Word, step.Number = do, *node.Word, node.NextNumber()
	return step
}

// orderable says whether an order for a volume may be given now, except for the final list of pods:
// moorage-node has found the volume forgotten and it is unused there; or an earlier call may still take
// effect and needs an answer, also if the volume is wanted again.
func (p *detachPlan) orderable(node *ledger.Node, place *ledger.NodeVolume) bool {
	if !node.Exists || !node.Managed || !ready(node) || place.Reported || saysNothing(node, p.volume.ID, p.now) || !canRepair(node) ||
		len(node.Word.Standing()) >= MaxOrders {
		return false
	}
	return node.Unanswered(p.volume.ID) || p.abandonedAt(node, place) && node.Word.CanUnstage(p.volume.ID)
}

// orderLasts says whether the conditions of an order still hold.
func (p *detachPlan) orderLasts(node *ledger.Node, place *ledger.NodeVolume, order ledger.UnstageOrder) bool {
	if !node.SpeaksOf(p.volume.ID) || order.BootID != node.Word.BootID || order.KubeletStarted != node.Word.KubeletStarted || place.Reported {
		return false
	}
	return node.Unanswered(p.volume.ID) || p.abandonedAt(node, place)
}

// abandonedAt says whether a volume has provably left a node's volumesAttached and is unused there: by the
// kubelet's word, without a rule of force, and by a later look.
func (p *detachPlan) abandonedAt(node *ledger.Node, place *ledger.NodeVolume) bool {
	switch {
	case !p.required, !policyOf(p.snapshot, p.volume).RepairStaged:
		return false
	case len(place.Users) > 0, place.InUse:
		return false
	case place.Proof.Stage < ledger.ProofUnreported, place.Proof.Forced, !node.Looked(place.Proof.Look):
		return false
	}
	return !p.isUnknown(place)
}

// canRepair says whether moorage-node reports, for the present boot and kubelet, that it can and may
// unstage volumes.
func canRepair(n *ledger.Node) bool {
	return n.Speaks() && n.Word.Repairs && n.Word.BootID != "" && n.Word.KubeletStarted != 0
}

// repairPause is the wait before the next order for a volume.
func repairPause(n *ledger.Node, v ledger.VolumeID, now time.Time) time.Duration {
	failures, last, _ := n.UnstageFailures(v)
	if failures == 0 {
		return 0
	}
	pause := min(firstRepairPause<<min(failures-1, 10), longestRepairPause)
	return pause - now.Sub(last)
}

// callsAgain describes, for messages, the future of an unanswered call to unstage a volume.
func callsAgain(n *ledger.Node, v ledger.VolumeID, now time.Time) string {
	text := "moorage-node goes on to call it"
	switch {
	case unresponsive(n, now):
		text = "moorage-node does not answer there, and calls nobody: see that its pod runs"
	case !n.Word.Repairs:
		text = "moorage-node there does not call it any more: it runs without --repair"
	case !canRepair(n), !n.SpeaksOf(v):
		text = "moorage-node there can't read everything that may be about the volume, which its NodeVolumes has, and calls nobody until it can"
	}
	if _, _, why := n.UnstageFailures(v); why != "" {
		text += ". It said last: " + why
	}
	return text
}

// unstagedAt describes, for messages, moorage-node's work on a volume that it found at a node; empty: none.
func unstagedAt(s ledger.Snapshot, v *ledger.Volume, n *ledger.Node) string {
	if n == nil || !n.MayBeUnstaged(v.ID) && (!policyOf(s, v).RepairStaged || !canRepair(n) || !n.SpeaksOf(v.ID)) {
		return ""
	}
	if _, _, why := n.UnstageFailures(v.ID); why != "" {
		return fmt.Sprintf("moorage-node is to unstage it, and could not yet: %s", why)
	}
	return "moorage-node is to unstage it"
}
