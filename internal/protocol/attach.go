// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// beginCreate sends a creation only if the ledger takes its announcement in: otherwise no claimant keeps
// the slot.
func beginCreate(t Task, s ledger.Snapshot) (Task, Move) {
	step := t.Step
	if !t.Announced {
		t.Announced = true
		return t, Move{Tell: []ledger.Event{ledger.AttachSent{Volume: step.Volume, Node: step.Node, Limit: step.Limit}}}
	}
	if t.Sent.Kind == rules.CreateAttachment {
		return t.send(read(Attachments, step.Attachment))
	}
	if place := s.Volume(step.Volume).OnNode(step.Node); place == nil || !place.Sent {
		return t.end(Stale, fmt.Sprintf("nobody at node %s is there any more for whom it was to be created, or another volume has got the last slot", step.Node))
	}
	a := ledger.Attachment{
		Name: step.Attachment, Driver: step.Volume.Driver, Node: step.Node,
		PersistentVolume: step.PV, Ours: true, Transitions: step.Transitions, Note: step.Note, NodeID: step.NodeID, Cooperative: step.Cooperative,
	}
	if step.PV == "" {
		a.Inline = step.Volume
	}
	return t.send(Request{Kind: rules.CreateAttachment, Key: step.Attachment, Volume: step.Volume, Node: step.Node, Fact: a, Beside: step.Beside})
}

// createAnswered: an existing attachment of the same volume is no error. The ledger counts a creation until
// AttachResolved: the object is known, or the API server refused the creation, or a read begun after the
// creation was outlasted does not find it. An earlier read proves nothing.
func (m *Memory) createAnswered(t Task, a Answer, now time.Time) (Task, Move) {
	settled := ledger.AttachResolved{Volume: t.Step.Volume, Node: t.Step.Node}
	if t.Sent.Kind == rules.GetObject {
		return foundAnswered(t, a, settled)
	}
	switch a.Result {
	case Done:
		if made, ok := first[ledger.Attachment](a); ok {
			m.confirmed.add(made.UID)
		}
		return t.end(Finished, "", settled)
	case Exists:
		return t.send(read(Attachments, t.Step.Attachment))
	case Unknown:
		return m.outlast(t, now)
	default:
		settled.Failed = true
		return t.fail(a, settled)
	}
}

// foundAnswered follows the read of an attachment whose creation is over.
func foundAnswered(t Task, a Answer, settled ledger.AttachResolved) (Task, Move) {
	found, ok := first[ledger.Attachment](a)
	failed := settled
	failed.Failed = true
	looks := t.Step.Kind == rules.FindAttachment // for any attachment
	switch {
	case ok && (looks || of(found, t.Step)):
		return t.end(Finished, "", settled)
	case ok:
		return t.end(Failed, fmt.Sprintf("VolumeAttachment %s exists and is of another volume: it takes a person to delete it", t.Step.Attachment), failed)
	case a.Result == NotFound && looks:
		return t.end(Finished, "", settled)
	case a.Result == NotFound:
		return t.end(Failed, fmt.Sprintf("VolumeAttachment %s was not created", t.Step.Attachment), failed)
	}
	return t.fail(a)
}

// of: two PersistentVolumes with one handle are one volume.
func of(a ledger.Attachment, step rules.Step) bool {
	if a.Driver != step.Volume.Driver || a.Node != step.Node || (a.PersistentVolume == "") != (step.PV == "") {
		return false
	}
	return step.PV != "" || a.Inline == step.Volume
}

// beginReport puts a volume into volumesAttached, once its attachment is proved to stay. After an outlasted
// patch it reads the Node. Without an attachment a volume needs a user at the node: a later read would have
// no other sign of it.
func (m *Memory) beginReport(t Task, s ledger.Snapshot) (Task, Move) {
	switch {
	case t.Sent.Kind == rules.PatchNode:
		return t.send(read(Nodes, string(t.Step.Node)))
	case t.Step.Volume.NoAttach() && !used(s, t.Step):
		return t.end(Stale, fmt.Sprintf("nobody at node %s uses the volume any more", t.Step.Node))
	case t.Step.Attachment != "" && !m.confirmed[t.Step.UID]:
		return t.confirm()
	}
	return t.patch()
}

// used says whether a pod or a ticket at a step's node uses or asks for its volume.
func used(s ledger.Snapshot, step rules.Step) bool {
	place := s.Volume(step.Volume).OnNode(step.Node)
	return place != nil && len(place.Users) > 0
}

// confirm gives the attachment of a task's step a new version.
func (t Task) confirm() (Task, Move) {
	return t.send(Request{Kind: rules.ConfirmAttachment, Key: t.Step.Attachment, UID: t.Step.UID, Volume: t.Step.Volume, Node: t.Step.Node})
}

// patch: an answer may never come, so a volume's proofs end before its addition to volumesAttached.
func (t Task) patch() (Task, Move) {
	t, move := t.send(Request{Kind: rules.PatchNode, Node: t.Step.Node, Volume: t.Step.Volume, Change: change(t.Step)})
	if t.Step.Kind == rules.Report {
		move.Tell = []ledger.Event{ledger.ReportSent{Volume: t.Step.Volume, Node: t.Step.Node}}
	}
	return t, move
}

// detaches: without need of an attachment, removal from volumesAttached alone detaches a volume. A ticket
// that has come meanwhile must not be told that it has it.
func (t Task) detaches() bool {
	return t.Step.Kind == rules.Unreport && t.Step.Volume.NoAttach() && t.Step.NodeUID != ""
}

// shows says whether the read of the task's node decides whether the volume has left it. Only the watch
// tells the ledger of a deleted Node.
func (t Task) shows(a Answer, s ledger.Snapshot) bool {
	n := s.Node(t.Step.Node)
	return a.Result == Done || a.Result == NotFound && (n == nil || !n.Exists || n.UID != t.Step.NodeUID)
}

// beginUnreport takes a volume out of volumesAttached. If the Node must not exist, a read must find none.
// After an outlasted patch the Node is read until the outcome is known. The ledger is told of a detaching
// removal first: a user that has come by then may know that the volume is there, and keeps it.
func beginUnreport(t Task, s ledger.Snapshot, now time.Time) (Task, Move) {
	switch {
	case t.Step.NodeUID == "" || t.Sent.Kind != 0:
		return t.send(read(Nodes, string(t.Step.Node)))
	case t.detaches() && !t.Announced:
		t.Announced = true
		return t, Move{Tell: []ledger.Event{ledger.UnreportSent{Volume: t.Step.Volume, Node: t.Step.Node}}}
	case t.detaches() && rules.Inhabited(s, t.Step.Volume, t.Step.Node, now):
		return t.end(Stale, fmt.Sprintf("somebody has come to node %s who may use the volume", t.Step.Node))
	}
	return t.patch()
}

func (m *Memory) reportAnswered(t Task, a Answer, s ledger.Snapshot, now time.Time) (Task, Move) {
	switch {
	case t.Sent.Kind == rules.ConfirmAttachment:
		return m.confirmAnswered(t, a)
	case t.Step.NodeUID == "" && a.Result == NotFound: // of an Unreport: a Report names its Node
		return t.end(Finished, "", unreported(t.Step))
	case t.Sent.Kind == rules.GetObject && t.detaches() && !t.shows(a, s):
		return m.outlast(t, now)
	case t.Sent.Kind == rules.GetObject:
		return t.reread(a)
	case a.Result == Done && t.Step.Kind == rules.Unreport:
		return t.end(Finished, "", unreported(t.Step))
	case a.Result == Done:
		return t.end(Finished, "")
	case a.Result == Conflict, a.Result == NotFound:
		return t.send(read(Nodes, string(t.Step.Node)))
	case a.Result == Unknown && (t.Step.Kind == rules.Report || t.Step.Rule != "" || t.detaches()):
		// Nothing else is decided about the volume until the outcome is known. A late addition to an equal
		// list would name a volume without attachment, and a late removal would detach another user's. The
		// hold has to name a possible forced removal.
		return m.outlast(t, now)
	}
	return t.fail(a)
}

// confirmAnswered follows a new annotation value: each DELETE in flight names an older version. The answer
// must show the same attachment, attached, and not being deleted.
func (m *Memory) confirmAnswered(t Task, a Answer) (Task, Move) {
	written, ok := first[ledger.Attachment](a)
	switch {
	case written.UID == t.Step.UID && written.Attached && !written.Deleting:
		m.confirmed.add(t.Step.UID)
		return t.patch()
	case ok, a.Result == NotFound, a.Result == Conflict:
		return t.end(Stale, fmt.Sprintf("VolumeAttachment %s is not attached for good", t.Step.Attachment))
	}
	return t.fail(a)
}

// markAnswered follows the note to an attacher that a volume is wanted again, or that an attach should be
// retried.
func markAnswered(t Task, a Answer) (Task, Move) {
	switch a.Result {
	case Done:
		return t.end(Finished, "")
	case NotFound, Conflict:
		return t.end(Stale, fmt.Sprintf("VolumeAttachment %s is not the one it was", t.Step.Attachment))
	default:
		return t.fail(a)
	}
}
