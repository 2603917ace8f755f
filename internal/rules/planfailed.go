// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/moorage-dev/moorage/internal/ledger"

// The hold reports an attach that the driver refuses, with the driver's text and code, from its first
// answer until the attach succeeds or the VolumeAttachment is gone. A normal attach writes nothing:
//
//	Invariant: Hold.State = AttachFailed ⇒ Hold.Reason = AttachFailed

// refused reports in a hold without a worse reason that the driver refuses an attach: at the holder's node
// first, then at a live migration's target.
func (p *planner) refused(was ledger.Hold, h *ledger.Hold) {
	if h.State != ledger.HoldHeld || h.Reason != "" {
		return
	}
	reason, found := p.attachError(was, p.volume.NodeVolume(h.Node))
	for i := range p.volume.NodeVolumes {
		if found {
			break
		}
		if place := &p.volume.NodeVolumes[i]; p.migratesTo(place) {
			reason, found = p.attachError(was, place)
		}
	}
	if found {
		h.State, h.Reason, h.Message = ledger.HoldAttachFailed, reason.Code, reason.Message()
	}
}

// attachError is the driver's error of an attach at a node. A deletion does not end a report in the hold:
// the next state is written once, when the VolumeAttachment is gone.
func (p *planner) attachError(was ledger.Hold, place *ledger.NodeVolume) (Reason, bool) {
	if !place.AttachFailed() {
		return Reason{}, false
	}
	va := p.own(place)
	if va.Deleting && was.State != ledger.HoldAttachFailed {
		return Reason{}, false
	}
	return failedAttach(p.snapshot, p.volume, va), true
}

func failedAttach(s ledger.Snapshot, v *ledger.Volume, va *ledger.Attachment) Reason {
	return Reason{
		Code: AttachFailed, Volume: v.ID, Claim: claimOf(s, v), Node: va.Node,
		Detail: va.AttachError.Message, GRPC: va.AttachError.Code,
	}
}
