// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/moorage-dev/moorage/internal/ledger"
)

// A shared volume has no holder. Its VolumeHold is for a message only: it waits at a silent node, with the
// progress of the rule of force for the next controller, or the driver refuses its attach.

// decideShared plans the write of a shared volume's hold, and its end when there is no message.
func (p *holdPlan) decideShared(was ledger.Hold) { p.writeShared(was, p.sharedHold(was)) }

// writeShared plans the write of a shared volume's hold, or the end of an old one.
func (p *holdPlan) writeShared(was, is ledger.Hold) {
	says := was.Node != "" || len(was.Fences) > 0 || was.Version != "" && (was.Force != nil ||
		was.State == ledger.HoldAttachFailed || was.State == ledger.HoldDetachPending ||
		was.State == "" && was.Grants > 0)
	silent := is.State == "" && len(is.Fences) == 0
	switch {
	case silent && says && was.Transitions == 0 && (was.Version != "" || len(was.Fences) > 0):
		p.deleteHold()
		return
	case is.State == "" && (says || len(is.Fences) > 0) && was.Transitions > 0:
		is.State = ledger.HoldFree // from its exclusive time
	case silent && p.volume.HoldUnanswered > 0:
		is.State = was.State
	case silent:
		return
	}
	if p.mustWrite(was, &is) {
		p.add(Step{Kind: WriteHold, Hold: is, Expect: was.Version})
	}
}

// No State: no hold.
func (p *holdPlan) sharedHold(was ledger.Hold) ledger.Hold {
	is := p.emptyHold(was)
	if place := p.overdue(); place != nil {
		stuck := p.unanswered(place)
		is.State, is.Reason, is.Message = ledger.HoldDetachPending, stuck.Code, stuck.Message()
		p.clock(was, &is, place)
	} else if reason, found := p.unattached(was); found {
		is.State, is.Reason, is.Message = ledger.HoldAttachFailed, reason.Code, reason.Message()
	}
	p.keepLeft(was, &is)
	is.Fences = p.fences(was, is)
	return is
}

// keepLeft keeps the node where the volume was left while it was exclusive.
func (p *holdPlan) keepLeft(was ledger.Hold, is *ledger.Hold) {
	if !was.Stays || p.lost(was.Node) {
		return
	}
	left := *is
	left.Node, left.NodeUID, left.BootID, left.SystemUUID = was.Node, was.NodeUID, was.BootID, was.SystemUUID
	if left.Stays = p.stays(was, left, p.volume.OnNode(was.Node)); left.Stays {
		p.unknown(&left)
		*is = left
	}
}

func (p *holdPlan) emptyHold(was ledger.Hold) ledger.Hold {
	return ledger.Hold{Version: was.Version, Transitions: was.Transitions, Grants: was.Grants, PVs: p.names()}
}

// unattached is a refused attach's error: the hold's, or else the first node's.
func (p *holdPlan) unattached(was ledger.Hold) (first Reason, found bool) {
	for i := range p.volume.OnNodes {
		reason, failed := p.attachError(was, &p.volume.OnNodes[i])
		switch {
		case failed && reason.Message() == was.Message:
			return reason, true
		case failed && !found:
			first, found = reason, true
		}
	}
	return first, found
}

// overdue is the silent node's place whose time for a forced detach has run longest. The hold keeps it:
// after a change of leader all other times start over.
func (p *holdPlan) overdue() *ledger.VolumeOnNode {
	var best *ledger.VolumeOnNode
	var longest forcing
	for i := range p.volume.OnNodes {
		place := &p.volume.OnNodes[i]
		f := force(p.snapshot, p.volume, place, p.now)
		idle := f.over() || f.Rule == "" && !f.Brake.On
		nothing := !attachedAt(place) && !place.Left && !place.WithoutAttachment() // to detach, whatever the kubelet's last report
		if idle || nothing || !p.mayBeAttached(place) || p.unanswered(place).Code != NodeUnreachable {
			continue
		}
		if best == nil || f.Elapsed > longest.Elapsed {
			best, longest = place, f
		}
	}
	return best
}

// With users there, only a rule about the node keeps a shared volume.
func (p *holdPlan) unanswered(place *ledger.VolumeOnNode) Reason {
	if !p.wanted(place) {
		return stuckAt(p.Arbiter, p.snapshot, p.volume, place, p.now)
	}
	reason := Reason{Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node}
	return unreachableAt(reason, p.snapshot.Node(place.Node), force(p.snapshot, p.volume, place, p.now))
}
