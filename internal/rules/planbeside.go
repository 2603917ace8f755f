// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Cooperative mode. The attach/detach controller attaches for every bound pod,
// detaches what it has attached, and is the only one that writes
// volumesAttached. It does not watch VolumeAttachments: one that was made for
// a ticket it does not know of until a pod of that volume is bound to the node,
// or until it starts anew, and then it deletes it (docs/decisions/0008).
const (
	// otherTurn is how long an attachment that nobody wants any more is left to
	// the attach/detach controller: it looks at everything it knows of ten times
	// a second.
	otherTurn = 2 * time.Second
	// besideWindow bounds the time from the look at a node's pods to the end of
	// a delete. A pod that is bound after that look has the attach/detach
	// controller look at the attachment, which it does half a second later at
	// the earliest (csi_attacher.go, waitForVolumeAttachment), and only then
	// report it: its kubelet finds the attachment deleted.
	besideWindow = 400 * time.Millisecond
	// otherLook is how long an attachment that went is not made again: the
	// attach/detach controller that deleted it looks for its name at intervals of
	// up to seven seconds and a tenth, and one of the same name that is there
	// when it looks is to it the one that it deleted. It would go on looking for
	// two minutes, and attach nothing meanwhile (csi_attacher.go,
	// waitForVolumeDetachment). For a bound pod it makes the next one itself.
	otherLook = 8 * time.Second
)

// gone says whether the attach/detach controller has seen that the attachment
// which was at a node before is no more.
func (p *planner) gone(place *ledger.NodeVolume) bool {
	at, left := p.volume.Left(place.Node)
	if !p.Cooperative || !left || p.now.Sub(at) >= otherLook {
		return true
	}
	p.recheck(otherLook - p.now.Sub(at))
	return false
}

// detachUnreported plans the next step that takes an attachment of Moorage's own
// from a node where nobody wants it and the attach/detach controller does not
// know of it: the volume is neither reported nor in use, and no pod is there. What needs no
// attachment, and was named by a Node that is gone, is nobody's to take: a read ends it.
func (p *planner) detachUnreported(node *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment) {
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
	step := p.leaving(node, place, va, rule)
	switch place.Proof.Stage {
	case ledger.ProofNone:
		step.Do = ProveAbsent
	case ledger.ProofUnwanted:
		step.Do, step.Within = DeleteAttachment, besideWindow
	default:
		step.Do = ConfirmUnwanted
	}
	p.add(step)
}
