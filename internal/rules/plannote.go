// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/moorage-dev/moorage/internal/ledger"
)

// A shared volume is held by nobody, and has a VolumeHold only while there is
// something to say: that it waits at a node that does not answer, and how far
// the rule of force has come, so that another controller goes on from there; or
// that the driver refuses to attach it.

// decideNote plans the write of what a shared volume's hold is to say, and its
// end when there is nothing to say any more.
func (p *planner) decideNote(was ledger.Hold) { p.writeNote(was, p.note(was)) }

// writeNote plans the write of a note, or the end of the one that was.
func (p *planner) writeNote(was, note ledger.Hold) {
	says := was.Node != "" || len(was.Fences) > 0 || was.Version != "" && (was.Force != nil ||
		was.State == ledger.HoldAttachFailed || was.State == ledger.HoldDetachPending ||
		was.State == "" && was.Grants > 0)
	silent := note.State == "" && len(note.Fences) == 0
	switch {
	case silent && says && was.Transitions == 0 && (was.Version != "" || len(was.Fences) > 0):
		p.deleteHold(ledger.Hold{Version: was.Version})
		return
	case note.State == "" && (says || len(note.Fences) > 0) && was.Transitions > 0:
		note.State = ledger.HoldFree // from when it was exclusive: its transitions stay
	case silent && p.volume.HoldUnanswered > 0:
		note.State = was.State
	case silent:
		return
	}
	if p.mustWrite(was, &note) {
		p.add(Step{Do: WriteHold, Hold: note, Expect: was.Version})
	}
}

// note is what a shared volume's hold is to say; without a State, nothing.
func (p *planner) note(was ledger.Hold) ledger.Hold {
	note := p.emptyNote(was)
	if place := p.overdue(); place != nil {
		stuck := p.unanswered(place)
		note.State, note.Reason, note.Message = ledger.HoldDetachPending, stuck.Code, stuck.Message()
		p.clock(was, &note, place)
	} else if reason, found := p.unattached(was); found {
		note.State, note.Reason, note.Message = ledger.HoldAttachFailed, reason.Code, reason.Message()
	}
	p.noteLeft(was, &note)
	note.Fences = p.fences(was, note)
	return note
}

// noteLeft has the hold of a volume that was exclusive when it was left at a node go on to say so.
func (p *planner) noteLeft(was ledger.Hold, note *ledger.Hold) {
	if !was.Stays || p.lost(was.Node) {
		return
	}
	left := *note
	left.Node, left.NodeUID, left.BootID, left.SystemUUID = was.Node, was.NodeUID, was.BootID, was.SystemUUID
	if left.Stays = p.stays(was, left, p.volume.NodeVolume(was.Node)); left.Stays {
		p.unknown(&left)
		*note = left
	}
}

func (p *planner) emptyNote(was ledger.Hold) ledger.Hold {
	return ledger.Hold{Version: was.Version, Transitions: was.Transitions, Grants: was.Grants, PVs: p.names()}
}

// unattached is what the driver said of an attach of a shared volume that it
// refuses: what the hold says already, or else of the first node.
func (p *planner) unattached(was ledger.Hold) (first Reason, found bool) {
	for i := range p.volume.NodeVolumes {
		reason, failed := p.attachError(was, &p.volume.NodeVolumes[i])
		switch {
		case failed && reason.Message() == was.Message:
			return reason, true
		case failed && !found:
			first, found = reason, true
		}
	}
	return first, found
}

// overdue is the place that a shared volume is to leave, or will have to, since its
// node does not answer, and whose time for a forced detach has run longest. It is
// the one that is kept: should the leader change, the time of any other starts over.
func (p *planner) overdue() *ledger.NodeVolume {
	var best *ledger.NodeVolume
	var longest forcing
	for i := range p.volume.NodeVolumes {
		place := &p.volume.NodeVolumes[i]
		f := force(p.snapshot, p.volume, place, p.now)
		idle := f.over() || f.Rule == "" && f.Brake.IsZero()
		nothing := !attachedAt(place) && !place.Left && !place.WithoutAttachment() // to detach, whatever the kubelet said last
		if idle || nothing || !p.mayBeAttached(place) || p.unanswered(place).Code != NodeUnreachable {
			continue
		}
		if best == nil || f.Elapsed > longest.Elapsed {
			best, longest = place, f
		}
	}
	return best
}

// unanswered says what keeps a shared volume at a node. Where somebody still claims
// it, a rule can only be about the node.
func (p *planner) unanswered(place *ledger.NodeVolume) Reason {
	if !p.wanted(place) {
		return stuckAt(p.Arbiter, p.snapshot, p.volume, place, p.now)
	}
	reason := Reason{Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node}
	return unreachableAt(reason, p.snapshot.Node(place.Node), force(p.snapshot, p.volume, place, p.now))
}
