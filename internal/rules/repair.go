// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A volume that a kubelet has forgotten stays staged until somebody unstages it. Where its
// policy says so, the controller orders the moorage-node of the node to do that, through the
// driver (docs/decisions/0053). The dangerous case is an unstage that takes effect after the
// volume was mounted there again. So nothing is ordered before it is proved that nobody wants
// the volume there; and from the order until it has ended, or is withdrawn in a write that
// shows that no call was begun, the volume is not put back into volumesAttached. A call that
// was begun ends with the driver's word that nothing is left, or with the boot.

// Times of an order.
const (
	// OrderLasts is for how long moorage-node may begin to carry an order out, from when it
	// first read it.
	OrderLasts = 30 * time.Second
	// firstRepairPause is how long the next order for a volume waits after one that led to
	// nothing; each time twice as long, and at most longestRepairPause.
	firstRepairPause   = 10 * time.Second
	longestRepairPause = 5 * time.Minute
	// MaxOrders is for how many volumes of a node orders stand at a time.
	MaxOrders = 32
)

// repair plans what is to be done about a forgotten volume at a node: that it is ordered to
// be unstaged, or that an order is withdrawn which is not right any more.
func (p *planner) repair(place *ledger.NodeVolume) {
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
		step := p.leaving(node, place, p.own(place), "")
		step.Do = ConfirmUnwanted
		p.add(step)
	}
}

// rested says whether the pause after orders that led to nothing is over.
func (p *planner) rested(node *ledger.Node) bool {
	left := repairPause(node, p.volume.ID, p.now)
	if left <= 0 || p.Hurried {
		return true
	}
	p.recheck(left)
	return false
}

func (p *planner) unstaging(node *ledger.Node, place *ledger.NodeVolume, do Action) Step {
	step := p.leaving(node, place, p.own(place), "")
	step.Do, step.Word, step.Number = do, *node.Word, node.NextNumber()
	return step
}

// orderable says whether an order for a volume may be given now, but for the list of pods
// that comes last: for one that moorage-node has found forgotten where nobody uses it any
// more; or, whoever wants it by now, to have a call answered that may yet have its effect.
func (p *planner) orderable(node *ledger.Node, place *ledger.NodeVolume) bool {
	if !node.Exists || !node.Managed || !ready(node) || place.Reported || saysNothing(node, p.volume.ID, p.now) || !canRepair(node) ||
		len(node.Word.Standing()) >= MaxOrders {
		return false
	}
	return node.Unanswered(p.volume.ID) || p.abandonedAt(node, place) && node.Word.CanUnstage(p.volume.ID)
}

// orderLasts says whether an order that stands is as right as when it was given.
func (p *planner) orderLasts(node *ledger.Node, place *ledger.NodeVolume, order ledger.UnstageOrder) bool {
	if !node.SpeaksOf(p.volume.ID) || order.BootID != node.Word.BootID || order.KubeletStarted != node.Word.KubeletStarted || place.Reported {
		return false
	}
	return node.Unanswered(p.volume.ID) || p.abandonedAt(node, place)
}

// abandonedAt says whether it is proved that a volume has left volumesAttached of a node, and
// nobody uses it there: by the kubelet's word, by no rule of force, and by a look that came
// later.
func (p *planner) abandonedAt(node *ledger.Node, place *ledger.NodeVolume) bool {
	switch {
	case !p.required, !policyOf(p.snapshot, p.volume).RepairStaged:
		return false
	case len(place.Users) > 0, place.InUse:
		return false
	case place.Proof.Stage < ledger.ProofUnreported, place.Proof.Forced, !node.Looked(place.Proof.Look):
		return false
	}
	return !Doubted(p.snapshot, p.volume, place)
}

// canRepair says whether moorage-node says of the boot and the kubelet that there are now
// that it can unstage volumes, and may.
func canRepair(n *ledger.Node) bool {
	return n.Speaks() && n.Word.Repairs && n.Word.BootID != "" && n.Word.KubeletStarted != 0
}

// repairPause is how long the next order for a volume has to wait.
func repairPause(n *ledger.Node, v ledger.VolumeID, now time.Time) time.Duration {
	failures, last, _ := n.UnstageFailures(v)
	if failures == 0 {
		return 0
	}
	pause := min(firstRepairPause<<min(failures-1, 10), longestRepairPause)
	return pause - now.Sub(last)
}

// callsAgain says, for people, what becomes of a call to unstage a volume that has no answer.
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

// unstagedAt says, for people, what moorage-node does about a volume that it has found at a
// node; empty: nothing.
func unstagedAt(s ledger.Snapshot, v *ledger.Volume, n *ledger.Node) string {
	if n == nil || !n.MayBeUnstaged(v.ID) && (!policyOf(s, v).RepairStaged || !canRepair(n) || !n.SpeaksOf(v.ID)) {
		return ""
	}
	if _, _, why := n.UnstageFailures(v.ID); why != "" {
		return fmt.Sprintf("moorage-node is to unstage it, and could not yet: %s", why)
	}
	return "moorage-node is to unstage it"
}
