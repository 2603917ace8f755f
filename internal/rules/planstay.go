// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A driver refuses the detach of a volume, and the volume is wanted again at its node. The deletion of a
// VolumeAttachment can't be undone, but an attacher that knows AnnotationWanted ends it without an
// unpublish. From then on only the hold tells where the volume is: the hold says it before the attacher is
// asked, and until a new VolumeAttachment of that node is attached:
//
//	Invariant: Hold.Stays ⇒ Hold.Node does not change, unless that node is lost

// asksToStay says whether the volume is to be left at a node where its deletion fails.
func (p *holdPlan) asksToStay(place *ledger.VolumeOnNode) bool {
	if !p.StayAttached || p.Cooperative || !p.exclusive || place == nil || !p.living(place) {
		return false
	}
	va := p.own(place)
	return va != nil && va.Ours && va.Deleting && !va.DetachError.IsZero() && !replaced(p.snapshot.Node(place.Node), va)
}

// stays says whether the volume may be at the holder's node unattached: it was asked for, or is in the hold
// and not disproved.
func (p *holdPlan) stays(was, h ledger.Hold, place *ledger.VolumeOnNode) bool {
	if was.Stays && was.Node == h.Node {
		if was.LeftAtAnother(p.snapshot.Node(h.Node)) || place == nil || p.own(place) == nil || p.own(place).Deleting {
			return true
		}
		// At a dead node that never confirms, it is unpublished at the end.
		return !p.own(place).Attached && !p.forcedFrom(place.Node)
	}
	return h.Next.Node == "" && p.asksToStay(place)
}

// lost says whether a node is gone for good: force is permitted, and it has no object for an attachment.
func (p *holdPlan) lost(name ledger.NodeName) bool {
	n := p.snapshot.Node(name)
	return p.forcedFrom(name) && (n == nil || !n.Exists)
}

// forcedFrom says whether a rule permits to take the volume from a node by force.
func (p *holdPlan) forcedFrom(name ledger.NodeName) bool {
	if place := p.volume.OnNode(name); place != nil {
		return force(p.snapshot, p.volume, place, p.now).over()
	}
	return fenced(p.snapshot, p.volume, name, p.now)
}

// unknown writes this state into a hold without another reason.
func (p *holdPlan) unknown(h *ledger.Hold) {
	if h.State == ledger.HoldDetachPending {
		return
	}
	words := "it may be attached to " + string(h.Node) + ", where it was left when its detach failed; "
	if h.LeftAtAnother(p.snapshot.Node(h.Node)) {
		words += "another machine has that name now: detach it by hand from the one with systemUUID " + h.SystemUUID + ", and delete this VolumeHold"
	} else if !p.lasts() {
		words += "no PersistentVolume names it by which it could be attached anew and detached: make one, or detach it there by hand and delete this VolumeHold"
	} else {
		words += "it is being attached anew"
	}
	if h.State == ledger.HoldAttachFailed {
		words += ": " + h.Message
	}
	h.State, h.Reason, h.Message = ledger.HoldUnknown, "", words
}

// askToStay plans the annotation, after the hold is written.
func (p *attachPlan) askToStay(place *ledger.VolumeOnNode) {
	va := p.own(place)
	if p.writesHold() {
		return // an unanswered write may have changed the hold
	}
	if was := hold(p.volume); !was.Stays || was.Node != place.Node || was.Version == "" || va.Wanted || p.hold.Next.Node != "" || !p.asksToStay(place) {
		return
	}
	p.add(Step{Kind: MarkWanted, Node: place.Node, Attachment: va.Name, UID: va.UID, Version: va.Version, Who: p.someone(place)})
}

func (p *attachPlan) writesHold() bool {
	return slices.ContainsFunc(p.plan.Steps, func(s Step) bool { return s.Kind == WriteHold })
}

// someone names a user that wants the volume at a node, for messages.
func (p *attachPlan) someone(place *ledger.VolumeOnNode) string {
	who := p.firstLiving(place)
	if who.IsZero() {
		return ""
	}
	return who.Namespace + "/" + who.Name
}

// attachAbandoned attaches a volume that was left at a node and is unwanted there: only an attachment can
// be detached. Its VolumeOnNode has its slot.
func (p *attachPlan) attachAbandoned() {
	was := hold(p.volume)
	if !was.Stays || was.Version == "" || p.exclusive && was.Node != p.hold.Node || was.Node == "" {
		return
	}
	place := p.volume.OnNode(was.Node)
	if place == nil || place.HasAttachments() || place.Sent || p.wanted(place) || !p.lasts() || !p.gone(place) {
		return
	}
	if node := p.snapshot.Node(was.Node); len(p.blockers(node, place)) == 0 {
		p.create(node, place)
	}
}

// attachedAnew finds an attachment made to detach a left volume, not attached yet. It is not deleted
// before: its end would not prove the detach. If no attacher will attach it, its PersistentVolume waits for
// its end.
func (p *detachPlan) attachedAnew(place *ledger.VolumeOnNode, va *ledger.Attachment) bool {
	was := hold(p.volume)
	waits := was.Stays && was.Node == place.Node && va != nil && !va.Attached && !va.Deleting && !was.LeftAtAnother(p.snapshot.Node(place.Node))
	return waits && p.lasts() && !p.forcedFrom(place.Node)
}
