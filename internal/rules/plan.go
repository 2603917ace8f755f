// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Kind is the kind of a step and of a request. A step is one write or one consistent read, with its
// precondition. internal/protocol carries a step out by one or several requests.
type Kind uint8

// The kinds. A step and a request have the first ones in common.
const (
	// WriteHold creates the volume's VolumeHold, or replaces exactly one version.
	WriteHold Kind = iota + 1
	// DeleteHold deletes the volume's VolumeHold at exactly one version.
	DeleteHold
	// CreateAttachment creates the VolumeAttachment under its deterministic name; an existing object is no
	// error. The ledger is told AttachSent before, and must take it in; it is told AttachResolved when the
	// outcome is proved. For a live migration it is created beside the attachment at Beside.
	CreateAttachment
	// DeleteAttachment deletes the VolumeAttachment of exactly UID and Version. For a step under a Rule a
	// consistent read must first show the Node at NodeVersion, where the rule holds, or without a NodeUID
	// that it does not exist.
	DeleteAttachment
	// MarkWanted tells the attacher that the volume is wanted again while an attachment, of exactly this
	// UID, is being deleted: the deletion may leave the volume in its place.
	MarkWanted
	// RemovePod deletes a terminating pod of an out-of-service node at once, as pod garbage collection
	// would later.
	RemovePod
	// AskNode asks a node's moorage-node to look once more, by a higher number in its NodeMountReport, at
	// exactly its version. On success the ledger is told LookAsked.
	AskNode

	// The kinds that only a step has:

	// Report puts the volume into volumesAttached, after the proof that its attachment UID is attached, not
	// being deleted, and newer than any delete in flight.
	Report
	// Unreport takes the volume out of volumesAttached, in a write with the proof that volumesInUse omits
	// it. Under a Rule, the proof is instead the version of the Node at which the rule held; without a
	// NodeUID, that the Node does not exist. On success the ledger is told Unreported.
	Unreport
	// ConfirmUnwanted lists the node's pods, consistently and after the write of Unreport, and tells the
	// ledger Unwanted, or the pods found.
	ConfirmUnwanted
	// ProveAbsent proves what Unreport proves, and writes nothing. It is used if volumesAttached is another
	// controller's, or seems to omit a volume that needs no attachment: the volume must be absent from it.
	ProveAbsent
	// FindAttachment reads consistently whether a sent creation has made the attachment, and tells the
	// ledger AttachResolved.
	FindAttachment
	// RetryAttach writes to an attachment, of exactly this UID, with a failed attach: its attacher retries
	// at once after a change of the object.
	RetryAttach

	// The kinds that only a request has (protocol.Request). Reads are consistent: no cache answers them.

	// GetObject reads the object Object/Key.
	GetObject
	// ListObjects reads all objects of the kind Object; for claims those in the namespace Key.
	ListObjects
	// ListPods reads all pods that are bound to Node.
	ListPods
	// ConfirmAttachment gives the VolumeAttachment Key of UID an annotation value that it never had, so
	// that it certainly has a new version.
	ConfirmAttachment
	// PatchNode makes Change in the status of Node. Waiting requests of one Node share a patch: see
	// protocol.Compose.
	PatchNode
	// DecideTicket writes Phase with the message of Verdict, Epoch, and Node if a node is chosen, into the
	// status of the VolumeTicket Key of UID, at exactly Version. A driver that knows an equal status
	// answers Done without sending it.
	DecideTicket
	// DeleteTicket deletes the VolumeTicket Key of exactly UID and Version.
	DeleteTicket
	// Kinds is the number after the last kind.
	Kinds
)

func (k Kind) String() string {
	if k == 0 || k >= Kinds {
		return "none"
	}
	return [...]string{"write-hold", "delete-hold", "create-attachment", "delete-attachment", "mark-wanted", "remove-pod", "ask-node",
		"report", "unreport", "confirm-unwanted", "prove-absent", "find-attachment", "retry-attach",
		"get", "list", "list-pods", "confirm-attachment", "patch-node", "decide-ticket", "delete-ticket"}[k-1]
}

// Step is one write or read.
type Step struct {
	Kind   Kind
	Volume ledger.VolumeID
	Node   ledger.NodeName

	NodeUID     string      // Report, Unreport, DeleteAttachment, WriteHold WhileReady: of the Node
	NodeVersion string      // Unreport and DeleteAttachment under a Rule: of the Node
	Rule        string      // Unreport, DeleteAttachment: the rule of force, or empty
	Attachment  string      // name of the VolumeAttachment
	UID         string      // of the VolumeAttachment, or of the pod to remove
	Version     string      // of the VolumeAttachment
	PV          string      // CreateAttachment: the source; empty for an inline volume
	Limit       int32       // CreateAttachment: the driver's slots at the node; 0: not checked
	NodeID      string      // CreateAttachment: the driver's name for the node
	Transitions int64       // CreateAttachment: the fencing token, 0 for a shared volume
	Note        ledger.Note // CreateAttachment: zero for a shared volume
	Hold        ledger.Hold // WriteHold
	Expect      string      // WriteHold, DeleteHold: the version to replace
	Who         string      // MarkWanted: the user that wants the volume, for messages
	// Successor, under a Rule about a former machine of the node's name, is the systemUUID of the present
	// machine, which may be Ready.
	Successor string
	// Beside, for CreateAttachment, is the source node of a live migration.
	Beside ledger.NodeName
	// Cooperative, for CreateAttachment, says that kube-controller-manager also attaches, and knows no pod
	// with the volume at the node.
	Cooperative bool

	// Urgent, for Unreport and DeleteAttachment, says that a user waits for the volume to leave the node,
	// or for its slot there.
	Urgent bool

	// WhileReady, for Unreport, ProveAbsent and WriteHold, says that the node must be Ready at that time. A
	// ticket has had the volume there and has ended, as far as this process knows: if it had ended while
	// the node was silent, its holder could not have been told.
	WhileReady bool

	// Unknown, for Unreport, says that the volume is unknown at the node (ledger.Snapshot.Unknown): the
	// kubelet's list does not tell.
	Unknown bool

	// Word, for AskNode, is the node's report so far. Number is higher than all earlier questions.
	Word   ledger.NodeWord
	Number int64
	// Vacant, for the second AskNode about an unknown volume, is since when the volume is known to be absent
	// there.
	Vacant time.Time

	// Within, if set, has DeleteAttachment list the node's pods once more, and end within this time of the
	// list.
	Within time.Duration
}

// Plan is the next work for a volume. Its steps may run in parallel; a step that must follow another is
// planned when that one's effect is seen.
type Plan struct {
	Steps []Step
	// Apart says that the plan for one node does not depend on work in flight at another, because many
	// nodes may share the volume: the next plan waits only for steps at its own nodes.
	Apart bool
	// Recheck is when time alone would change the plan. Zero: never.
	Recheck time.Time
}

// planner makes one Plan.
type planner struct{ attachPlan }

func (a Arbiter) planner(s ledger.Snapshot, v *ledger.Volume, now time.Time) *planner {
	p := &planner{}
	p.planning = planning{
		Arbiter: a, snapshot: s, volume: v, now: now,
		exclusive: exclusive(access(s, v, v.Access)), required: s.AttachRequired(v.ID.Driver),
	}
	p.shared = p.exclusive && !exclusive(told(v, v.Access))
	p.onlyHeld = p.shared && !keptDetached(s, v)
	p.shared = p.shared && !p.onlyHeld
	return p
}

// Plan returns the next work for one volume.
func (a Arbiter) Plan(s ledger.Snapshot, id ledger.VolumeID, now time.Time) Plan {
	v := s.Volume(id)
	if v == nil || !id.IsReal() {
		return Plan{}
	}
	p := a.planner(s, v, now)
	p.plan.Apart = !p.exclusive
	if !p.adopted() {
		p.leave()
		return p.plan
	}
	p.decideHold()
	if v.HoldUnanswered > 0 {
		return p.plan // no step relies on a hold that may lack known facts
	}
	for i := range v.OnNodes {
		place := &v.OnNodes[i]
		switch {
		case place.Node == ledger.Detached:
			continue // nothing is there
		case place.Sent:
			p.find(place)
		case p.wanted(place):
			p.acquire(place)
		default:
			p.release(place)
		}
		if p.wanted(place) || p.hasGrantee(place) {
			p.awaitFence(place)
		}
	}
	p.attachAbandoned()
	return p.plan
}

// In Cooperative mode Moorage ignores most volumes: those without an opted-in pod or a ticket get neither a
// VolumeHold nor a VolumeAttachment. The ledger still counts their attachments for slots and exclusivity.
// The first user that opts in finds the volume in its place (holdPlan.found).

// adopted says whether Moorage manages a volume: always in Standalone mode, else while an opted-in pod or a
// ticket uses it, and after that until it is at rest or another user uses it.
func (p *planner) adopted() bool {
	if !p.Cooperative {
		return true
	}
	others := false
	for i := range p.volume.OnNodes {
		place := &p.volume.OnNodes[i]
		if place.Sent || place.Left || slices.ContainsFunc(place.Attachments(), func(a *ledger.Attachment) bool { return a.Ours }) {
			return true
		}
		for _, u := range place.Users {
			if !p.outsider(u) {
				return true
			}
			others = true
		}
	}
	return !others && hold(p.volume).Node != ""
}

// outsider says whether a user of a VolumeOnNode is a pod that has not opted in.
func (p *planner) outsider(u ledger.User) bool {
	pod := p.snapshot.Pod(u.Pod)
	return pod != nil && pod.OptedOut
}

// leave plans the end of Moorage's records of a formerly adopted volume: the hold names no node, and is
// deleted with the volume. Its fences of volumes taken by force stay while they may be true. A note that a
// deleted Node named the volume stays as well.
func (p *planner) leave() {
	was := p.volume.Written()
	switch {
	case p.forgotten():
		p.deleteHold()
	case !p.exclusive:
		is := p.emptyHold(was)
		is.Fences = p.fences(was, is)
		p.writeShared(was, is)
	case was.Node != "" || len(was.Fences) > 0:
		p.hold = p.emptyHold(was)
		p.hold.State, p.hold.Fences = ledger.HoldFree, p.fences(was, p.hold)
		if !sameHold(was, p.hold) {
			p.writeHold()
		}
	}
	for i := range p.volume.OnNodes {
		if place := &p.volume.OnNodes[i]; place.ReportSent {
			p.detachUnreported(p.snapshot.Node(place.Node), place, p.own(place))
		}
	}
}
