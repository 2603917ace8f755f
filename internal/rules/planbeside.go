// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Cooperative mode. The attach/detach controller attaches for each bound pod, detaches its own attachments,
// and alone writes volumesAttached. It does not watch VolumeAttachments: it learns of a ticket's attachment
// only when a pod of that volume is bound to the node, or when it restarts; then it deletes it
// (docs/decisions/0008).
const (
	// otherTurn is how long an unwanted attachment is left to the attach/detach controller, which checks
	// all it knows ten times a second.
	otherTurn = 2 * time.Second
	// besideWindow bounds the time from the read of a node's pods to the end of a delete. For a pod bound
	// after that read, the attach/detach controller checks the attachment half a second later at the
	// earliest (csi_attacher.go, waitForVolumeAttachment), and reports it only then: its kubelet finds the
	// attachment deleted.
	besideWindow = 400 * time.Millisecond
	// otherLook is how long an ended attachment is not made again. The attach/detach controller that
	// deleted it looks for its name at intervals of up to 7.1 seconds, and takes a new attachment of that
	// name for the deleted one: it would go on looking for two minutes and attach nothing meanwhile
	// (csi_attacher.go, waitForVolumeDetachment). For a bound pod it makes the next attachment itself.
	otherLook = 8 * time.Second
)

// gone says whether the attach/detach controller has seen the end of the last attachment at a node.
func (p *planner) gone(place *ledger.NodeVolume) bool {
	at, left := p.volume.Left(place.Node)
	if !p.Cooperative || !left || p.now.Sub(at) >= otherLook {
		return true
	}
	p.recheck(otherLook - p.now.Sub(at))
	return false
}

// detachUnreported plans the next step that takes Moorage's own attachment from a node, if it is unwanted
// there and unknown to the attach/detach controller: the volume is neither reported nor in use, and has no
// pod there. A volume that needs no attachment, and was named by a deleted Node, can't be taken: a read
// ends it.
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
