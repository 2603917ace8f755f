// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// needsHold says whether a planned hold must be a VolumeHold. Most exclusive volumes need none: the note in
// the VolumeAttachment, or in the next one, says for which Node, machine and boot it was made, and this is all
// that a new leader must know. A VolumeHold is needed for:
//   - a volume without VolumeAttachments (iSCSI, FC);
//   - a VolumeAttachment without a note, or with a note of another Node or boot than now holds;
//   - a volume that may be at a second node, or at a node without a VolumeAttachment;
//   - a ticket, a forced detach and its time, a volume left at its node, and a report to people.
func (p *planner) needsHold(h *ledger.Hold) bool {
	if h.Node != "" && (p.volume.ID.NoAttach() || !p.required || p.onlyHeld || p.shared || h.Node == ledger.Detached) {
		return true
	}
	if h.Stays || h.Force != nil || len(h.Fences) > 0 || h.NamesTicket() || h.Next.To.Ticket || slices.ContainsFunc(h.Waiting, isTicket) {
		return true
	}
	if h.State != "" && h.State != ledger.HoldHeld && h.State != ledger.HoldFree || h.Reason != "" && h.Reason != DetachDelayed {
		return true
	}
	for i := range p.volume.NodeVolumes {
		if place := &p.volume.NodeVolumes[i]; place.Node != h.Node && p.mayBeAttached(place) {
			return true
		}
	}
	return p.unnoted(h, p.volume.NodeVolume(h.Node))
}

func isTicket(r ledger.Requester) bool { return r.Ticket }

// unnoted says whether the volume may be at its holder's node, and no attachment's note says what the hold
// says.
func (p *planner) unnoted(h *ledger.Hold, place *ledger.NodeVolume) bool {
	switch {
	case place == nil:
		return false
	case place.UnlistedBy() != nil && !ready(p.snapshot.Node(place.Node)):
		return true // the holder of an ended ticket may use it
	case !place.HasAttachments():
		return !place.Sent && p.mayBeAttached(place)
	}
	note := place.Note()
	return note.NodeUID != h.NodeUID || note.Boot != h.Boot() && h.BootID != "" || len(place.Attachments()) > 1
}

// attachedAnywhere says whether the API shows the volume as attached to any node.
func (p *planner) attachedAnywhere() bool {
	return slices.ContainsFunc(p.volume.NodeVolumes, func(place ledger.NodeVolume) bool { return attachedAt(&place) || place.Left })
}

// asHeld is the hold that the next attachment relies on: the recorded one, or without a record the planned
// one, if it needs no VolumeHold.
func (p *planner) asHeld() ledger.Hold {
	was := hold(p.volume)
	if !p.exclusive || was.Node != "" || was.Version != "" {
		return was
	}
	if h := p.nextHold(was); !p.needsHold(&h) {
		return h
	}
	return was
}
