// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A kubelet killed during an unmount may have forgotten a staged volume, so that only moorage-node sees it.
// Where that runs, the volume first leaves volumesAttached, and the kubelet mounts it no more. Then the
// node is asked to look, with a new number. The detach continues after it has found nothing. If it falls
// silent, a volume that it had named as forgotten stays (docs/decisions/0053).

// LookPatience is the time for a moorage-node's answer before it counts as silent.
const LookPatience = 30 * time.Second

// The pauses after refused questions, each as long as the refusals so far.
const (
	firstAskPause   = 5 * time.Second
	longestAskPause = 5 * time.Minute
)

// vacantFor is an unknown volume's absence before the second look. After an unstage a kubelet may mount it
// without volumesAttached until its next check, every 0.1 s. It lists a volume to use in volumesInUse
// within 10 s.
const vacantFor = 15 * time.Second

// unsaid is why the kubelet's word is not enough if moorage-node's report is required.
const unsaid = "moorage-node has not said there that nothing of it is staged or mounted, and its report is required"

// unread is the same after moorage-node has looked.
const unread = "moorage-node there could not read everything that may be about it, and its report is required"

// whyUnsaid chooses between unsaid and unread.
func whyUnsaid(n *ledger.Node, v ledger.VolumeID, now time.Time) string {
	if !unresponsive(n, now) && !n.SpeaksOf(v) {
		return unread
	}
	return unsaid
}

// requiresWord: moorage-node reads no records of volumes without VolumeAttachments.
func (a Arbiter) requiresWord(v *ledger.Volume) bool { return a.RequireNodeReport && !v.ID.NoAttach() }

// unresponsive: the report is not about the present Node and boot, or the node has not answered, or could
// not be asked, for too long.
func unresponsive(n *ledger.Node, now time.Time) bool {
	return !n.Answers() || overdue(n.AskedAt, now) || overdue(n.RefusedSince, now)
}

func overdue(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= LookPatience }

// askPause is the wait before the next question to a node.
func askPause(n *ledger.Node, now time.Time) time.Duration {
	if n.RefusedSince.IsZero() {
		return 0
	}
	return min(max(n.RefusedAt.Sub(n.RefusedSince), firstAskPause), longestAskPause) - now.Sub(n.RefusedAt)
}

// saysNothing: the node is unresponsive, or can't read everything that may concern the volume.
func saysNothing(n *ledger.Node, v ledger.VolumeID, now time.Time) bool {
	return unresponsive(n, now) || !n.SpeaksOf(v)
}

// sawNothing: a node that can't read everything has looked and not found the volume.
func sawNothing(n *ledger.Node, v ledger.VolumeID, p *ledger.VolumeOnNode) bool {
	return !n.SpeaksOf(v) && n.Looked(p.Proof.Look) && !n.SaysHas(v)
}

// staged: the node found the volume after the question, or before it fell silent.
func staged(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, now time.Time) bool {
	n := s.Node(p.Node)
	return n.Looked(p.Proof.Look) && n.SaysHas(v.ID) || stagedByOldWord(n, v.ID, p, now)
}

// stagedByOldWord says whether a silent node's report names a volume that the kubelet had forgotten. The
// report stays valid: no kubelet unmounts such a volume. The other volumes are in the kubelet's own reports
// since.
func stagedByOldWord(n *ledger.Node, v ledger.VolumeID, p *ledger.VolumeOnNode, now time.Time) bool {
	return p.Proof.Stage >= ledger.ProofUnreported && n.Answers() && unresponsive(n, now) && !n.Looked(p.Proof.Look) && n.SaysHas(v) && n.Word.Forgot(v)
}

// oldWord is the detail of StagedAtNode at an unresponsive node.
const oldWord = "moorage-node does not answer since then, so that this may be old: see that its pod runs there. " +
	"If it is gone for good, see at the node that nothing of the volume is mounted, and delete the NodeMountReport"

// lastWord is for an unknown volume. While the report names it the node is not asked, so that its silence
// would go unseen.
const lastWord = "moorage-node has not been asked since, so that this may be old if its pod does not run there"

// stayingAt adds the age of an old report.
func stayingAt(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, reason Reason, now time.Time) Reason {
	n := s.Node(p.Node)
	reason.Code = StagedAtNode
	switch {
	case stagedByOldWord(n, v.ID, p, now):
		reason.Detail = oldWord
	case s.IsUnknown(v, p) && !n.Looked(p.Proof.Look):
		reason.Detail = lastWord
	}
	return reason
}

// saidGone: the node has looked after the question, has seen everything, and has not found the volume.
func saidGone(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	n := s.Node(p.Node)
	return n.Looked(p.Proof.Look) && n.SpeaksOf(v.ID) && !n.SaysHas(v.ID)
}

// unsaid says whether moorage-node's report is required, and the node can't give it.
func (a Arbiter) unsaid(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, now time.Time) bool {
	return a.requiresWord(v) && !saidGone(s, v, p) && saysNothing(s.Node(p.Node), v.ID, now)
}

// asksNode says whether a detach has to wait for the node's report, and plans the question. It is always
// needed if the report is required, or, with two looks, for an unknown volume. Otherwise none is needed if
// the node itself reported that the volume came and went, or if it is unresponsive and did not name the
// volume as forgotten (else SafeToDetach refuses). A node that can't read everything is asked: the volume
// may be in the readable part.
func (p *detachPlan) asksNode(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) bool {
	unknown := p.isUnknown(place)
	required := unknown || p.requiresWord(p.volume)
	switch {
	case p.volume.ID.NoAttach() || node == nil || node.Word == nil:
		return false // if the report is required, SafeToDetach has refused
	case !required && (place.Proof.Unstaged || unresponsive(node, p.now) || sawNothing(node, p.volume.ID, place)):
		return false
	case saidGone(p.snapshot, p.volume, place):
		return unknown && p.asksAgain(node, place, va)
	case place.Proof.Look == 0 || node.Word.Look < int64(place.Proof.Look): // the asked moorage-node is gone
		p.ask(node, place, va, time.Time{})
	case !unresponsive(node, p.now) && !node.AskedAt.IsZero():
		p.recheck(LookPatience - p.now.Sub(node.AskedAt))
	}
	return true
}

// asksAgain says whether a node that has found nothing of an unknown volume has to look a second time, and
// plans the question in time.
func (p *detachPlan) asksAgain(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) bool {
	since := p.snapshot.Vacant(place)
	left := vacantFor - p.now.Sub(since)
	switch {
	case place.Proof.Again:
		return false
	case since.IsZero(): // its finding is not taken in yet
	case left > 0 && !p.Hurried:
		p.recheck(left)
	default:
		p.ask(node, place, va, since)
	}
	return true
}

// emptied says whether a node has looked twice for an unknown volume and found nothing. The hold must say
// that before the detach continues.
func (p *planning) emptied(place *ledger.VolumeOnNode) bool {
	return place.Proof.Again && p.snapshot.IsUnknownHere(p.volume, place) && saidGone(p.snapshot, p.volume, place)
}

// ask plans a question, or a check at the end of a pause or the patience. vacant is set for a second look.
func (p *detachPlan) ask(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment, vacant time.Time) {
	if left := askPause(node, p.now); left > 0 {
		p.recheck(left)
		if patience := LookPatience - p.now.Sub(node.RefusedSince); patience > 0 {
			p.recheck(patience)
		}
		return
	}
	step := p.detachStep(node, place, va, "")
	step.Kind, step.Word, step.Number, step.Vacant = AskNode, *node.Word, node.NextNumber(), vacant
	p.add(step)
}

// askAgain plans a question to a node that can't be asked, if the volume must wait for the answer.
func (p *detachPlan) askAgain(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) {
	if node.Answers() && !node.RefusedSince.IsZero() && !place.InUse && !p.volume.ID.NoAttach() {
		p.ask(node, place, va, time.Time{})
	}
}
