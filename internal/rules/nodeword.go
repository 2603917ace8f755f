// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A kubelet that was killed while it took a volume down may have forgotten it: the volume
// is staged, and in no list of the API. Only moorage-node sees it. So, where it runs, the
// volume first leaves volumesAttached, after which the kubelet mounts it for nobody; then
// the node is asked to look, by a number that it has not been asked with before; and the
// detach goes on when it has looked after that, and has found nothing of the volume. Where it
// falls silent, what it had named as forgotten stays (docs/decisions/0053).

// LookPatience is how long the moorage-node of a node may owe an answer, after which it
// counts as silent. It looks as soon as it is asked.
const LookPatience = 30 * time.Second

// The pauses after a question that the API server has refused: each as long as it had refused
// questions up to then.
const (
	firstAskPause   = 5 * time.Second
	longestAskPause = 5 * time.Minute
)

// vacantFor is for how long nothing of a volume in doubt is to be there before the node looks a second
// time. A kubelet that has unstaged a volume holds it for attached until its next look at its volumes,
// every 0.1 s, and may mount it until then without a look at volumesAttached; one that is to use
// it lists it in volumesInUse within 10 s.
const vacantFor = 15 * time.Second

// unsaid is why the word of the kubelet is not enough where the policy asks for another.
const unsaid = "moorage-node has not said there that nothing of it is staged or mounted, and its AttachPolicy has requireNodeWord"

// unread is the same where moorage-node has looked.
const unread = "moorage-node there could not read everything that may be about it, and its AttachPolicy has requireNodeWord"

// whyUnsaid is which of the two it is.
func whyUnsaid(n *ledger.Node, v ledger.VolumeID, now time.Time) string {
	if !unresponsive(n, now) && !n.SpeaksOf(v) {
		return unread
	}
	return unsaid
}

// requiresWord says whether the policy of a volume has the silence of moorage-node count as
// in use. Of volumes without VolumeAttachments it reads no record.
func requiresWord(s ledger.Snapshot, v *ledger.Volume) bool {
	return !v.ID.NoAttach() && policyOf(s, v).RequireNodeWord
}

// unresponsive says whether nobody answers at a node: its word is not about the Node and the
// boot that there are, or it owes an answer for too long, or can't be asked for as long.
func unresponsive(n *ledger.Node, now time.Time) bool {
	return !n.Answers() || overdue(n.AskedAt, now) || overdue(n.RefusedSince, now)
}

func overdue(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= LookPatience }

// askPause is how long the next question to a node has to wait.
func askPause(n *ledger.Node, now time.Time) time.Duration {
	if n.RefusedSince.IsZero() {
		return 0
	}
	return min(max(n.RefusedAt.Sub(n.RefusedSince), firstAskPause), longestAskPause) - now.Sub(n.RefusedAt)
}

// saysNothing says whether a node can't say that a volume is not there: it is unresponsive, or
// can't read everything that may be about it.
func saysNothing(n *ledger.Node, v ledger.VolumeID, now time.Time) bool {
	return unresponsive(n, now) || !n.SpeaksOf(v)
}

// sawNothing says whether a node that can't read everything has looked since it was asked to,
// and has not found the volume.
func sawNothing(n *ledger.Node, v ledger.VolumeID, p *ledger.NodeVolume) bool {
	return !n.SpeaksOf(v) && n.Looked(p.Proof.Look) && !n.SaysHas(v)
}

// staged says whether the node has looked since it was asked to, and has found the volume;
// or it had found it before and has fallen silent; or it may still be unstaged there. That a look
// finds nothing does not end a call: a mount leaves the mount table before its file system is
// flushed (umount(2)), so that the driver may be at work on the disk while nothing is to be seen.
func staged(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) bool {
	n := s.Node(p.Node)
	return n.Looked(p.Proof.Look) && n.SaysHas(v.ID) || stagedByOldWord(n, v.ID, p, now) || n.MayBeUnstaged(v.ID)
}

// stagedByOldWord says whether the word of a node that does not answer any more has a volume
// that the kubelet had forgotten by then. Silence takes no knowledge away: the word is of this Node and this boot, and
// no kubelet takes such a volume down. What the kubelet knew of when the word was said, it has
// reported since: that goes by its word, as where nobody answers.
func stagedByOldWord(n *ledger.Node, v ledger.VolumeID, p *ledger.NodeVolume, now time.Time) bool {
	return p.Proof.Stage >= ledger.ProofUnreported && n.Answers() && unresponsive(n, now) && !n.Looked(p.Proof.Look) && n.SaysHas(v) && n.Word.Forgot(v)
}

// oldWord is what a StagedAtNode says where nobody answers at the node.
const oldWord = "moorage-node does not answer since then, so that this may be old: see that its pod runs there. " +
	"If it is gone for good, see at the node that nothing of the volume is mounted, and delete the NodeVolumes"

// lastWord is what a StagedAtNode says of a volume in doubt about which the node has not been asked:
// as long as it names the volume nobody asks it, so that nobody sees whether it answers.
const lastWord = "moorage-node has not been asked since, so that this may be old if its pod does not run there"

// stayingAt completes the reason of a volume that is staged at a node, or may still be unstaged
// there: UnstageUnanswered where nothing but a call without an answer keeps it.
func stayingAt(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, reason Reason, now time.Time) Reason {
	n := s.Node(p.Node)
	reason.Code, reason.Detail = StagedAtNode, stagedDetail(s, v, p, now)
	switch failures, _, _ := n.UnstageFailures(v.ID); {
	case !n.Unanswered(v.ID):
	case !n.SaysHas(v.ID):
		reason.Code, reason.Driver, reason.Detail = UnstageUnanswered, v.ID.Driver, callsAgain(n, v.ID, now)
	case failures > 0, unresponsive(n, now), !canRepair(n): // else the call may just be under way
		reason.Driver, reason.Detail = v.ID.Driver, callsAgain(n, v.ID, now)
	}
	return reason
}

// stagedDetail says, for people, how old the word is by which a volume counts as staged, or
// what moorage-node does about the volume; empty: the word is new, and it does nothing.
func stagedDetail(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) string {
	n := s.Node(p.Node)
	if stagedByOldWord(n, v.ID, p, now) && !n.MayBeUnstaged(v.ID) {
		return oldWord
	}
	if Doubted(s, v, p) && !n.Looked(p.Proof.Look) && !n.MayBeUnstaged(v.ID) {
		return lastWord
	}
	return unstagedAt(s, v, n)
}

// saidGone says whether the node has looked since it was asked to, has seen all there is,
// and has not found the volume.
func saidGone(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume) bool {
	n := s.Node(p.Node)
	return n.Looked(p.Proof.Look) && n.SpeaksOf(v.ID) && !n.SaysHas(v.ID)
}

// unsaid says whether the policy requires moorage-node's word, and there is nobody to give
// it.
func (a Arbiter) unsaid(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) bool {
	return !a.HearsNoNodes && requiresWord(s, v) && !saidGone(s, v, p) && saysNothing(s.Node(p.Node), v.ID, now)
}

// asksNode says whether a detach has to wait for the word of the node, after the volume has
// left its volumesAttached, and plans that it is asked. It need not where the node has said
// itself that the volume came and went; nor where nobody answers there, and the last word
// does not have the volume as forgotten (SafeToDetach refuses where it does). One that can't read
// everything is asked as well: the volume may be among what it can read. Where the policy
// requires the word, nothing spares the question; nor where the kubelet's list does not tell whether
// the volume is in use, and then the node has to look twice.
func (p *planner) asksNode(node *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment) bool {
	doubted := Doubted(p.snapshot, p.volume, place)
	required := doubted || requiresWord(p.snapshot, p.volume)
	switch {
	case p.volume.ID.NoAttach() || node == nil || node.Word == nil:
		return false // where the word is required, SafeToDetach has refused
	case !required && (place.Proof.Unstaged || unresponsive(node, p.now) || sawNothing(node, p.volume.ID, place)):
		return false
	case saidGone(p.snapshot, p.volume, place):
		return doubted && p.asksAgain(node, place, va)
	case place.Proof.Look == 0 || node.Word.Look < int64(place.Proof.Look): // who was asked is not there any more
		p.ask(node, place, va, time.Time{})
	case !unresponsive(node, p.now) && !node.AskedAt.IsZero():
		p.recheck(LookPatience - p.now.Sub(node.AskedAt))
	}
	return true
}

// asksAgain says whether a node that has found nothing of a volume in doubt has to look a second
// time, and plans that it is asked when it is time.
func (p *planner) asksAgain(node *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment) bool {
	since := p.snapshot.Vacant(place)
	left := vacantFor - p.now.Sub(since)
	switch {
	case place.Proof.Again:
		return false
	case since.IsZero(): // what it found is not taken in yet
	case left > 0 && !p.Hurried:
		p.recheck(left)
	default:
		p.ask(node, place, va, since)
	}
	return true
}

// emptied says whether a node has looked twice for a volume of which the kubelet's list did not tell, since
// the volume has left volumesAttached, and has found nothing: that doubt is over, as the hold is to say
// before the detach goes on.
func (p *planner) emptied(place *ledger.NodeVolume) bool {
	return place.Proof.Again && doubtedHere(p.snapshot, p.volume, place) && saidGone(p.snapshot, p.volume, place)
}

// ask plans that a node is asked, or looks again when the pause after a refused question is
// over, or the patience with it. vacant, of a second look, is since when nothing is there.
func (p *planner) ask(node *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment, vacant time.Time) {
	if left := askPause(node, p.now); left > 0 {
		p.recheck(left)
		if patience := LookPatience - p.now.Sub(node.RefusedSince); patience > 0 {
			p.recheck(patience)
		}
		return
	}
	step := p.leaving(node, place, va, "")
	step.Do, step.Word, step.Number, step.Vacant = AskNode, *node.Word, node.NextNumber(), vacant
	p.add(step)
}

// askAgain plans the next question to a node that may not be asked, where a volume may not
// leave it without the answer.
func (p *planner) askAgain(node *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment) {
	used := place.InUse && (!Doubted(p.snapshot, p.volume, place) || node.Lists(p.volume.ID, place))
	if node.Answers() && !node.RefusedSince.IsZero() && !used && !p.volume.ID.NoAttach() {
		p.ask(node, place, va, time.Time{})
	}
}
