// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/moorage-dev/moorage/internal/ledger"

// An attach that the driver refuses is said in the hold, with the driver's words
// and code, from its first answer until it attaches the volume, or the
// VolumeAttachment is gone. An attach that goes as it should writes nothing:
//
//	Invariant: Hold.State = AttachFailed ⇒ Hold.Reason = AttachFailed

// refused says in a hold with nothing worse to say that the driver refuses to
// attach the volume: to the holder's node first, then to where a live migration
// takes it.
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

// attachError is what the driver said of the attach to a node. A deletion does
// not take it back where the hold says it already: what comes next is written
// when the VolumeAttachment is gone, in one.
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

// failedAttach words the driver's refusal to attach a volume.
func failedAttach(s ledger.Snapshot, v *ledger.Volume, va *ledger.Attachment) Reason {
	return Reason{
		Code: AttachFailed, Volume: v.ID, Claim: claimOf(s, v), Node: va.Node,
		Detail: va.AttachError.Message, GRPC: va.AttachError.Code,
	}
}
