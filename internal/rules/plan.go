// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Kind is the kind of a step and of a request. A step is one write or consistent read, with its
// precondition; internal/protocol carries it out by requests.
type Kind uint8

// The kinds of steps and requests.
const (
	// WriteHold creates the VolumeHold, or replaces exactly one version.
	WriteHold Kind = iota + 1
	// DeleteHold deletes the VolumeHold at exactly one version.
	DeleteHold
	// CreateAttachment creates the VolumeAttachment under its deterministic name; an existing object is no
	// error. First the ledger must take AttachSent in; AttachResolved follows the proved outcome. A live
	// migration's is created beside the attachment at Beside.
	CreateAttachment
	// DeleteAttachment deletes exactly UID and Version. Under a Rule a read must first show the Node at
	// NodeVersion, or without a NodeUID, no Node.
	DeleteAttachment
	// MarkWanted tells the attacher that the volume is wanted again while the attachment of this UID is
	// being deleted.
	MarkWanted
	// RemovePod deletes a terminating pod of an out-of-service node before pod garbage collection would.
	RemovePod
	// AskNode asks moorage-node to look once more, by a higher number in its NodeMountReport, at exactly
	// its version.
	AskNode

	// The kinds of steps only:

	// Report puts the volume into volumesAttached, after the proof that attachment UID is attached, not
	// being deleted, and newer than any delete in flight.
	Report
	// Unreport takes the volume out of volumesAttached, in a write with the proof that volumesInUse omits
	// it. Under a Rule, the proof is the Node's version at which the rule held, or without a NodeUID, that
	// there is no Node.
	Unreport
	// ConfirmUnwanted lists the node's pods, consistently and after Unreport, and tells the ledger
	// Unwanted, or the pods found.
	ConfirmUnwanted
	// ProveAbsent proves what Unreport proves, and that volumesAttached omits the volume, without a write:
	// the list is another controller's, or seems to omit a volume that needs no attachment.
	ProveAbsent
	// FindAttachment reads whether a sent creation has made the attachment, for AttachResolved.
	FindAttachment
	// RetryAttach changes a failed attachment of this UID, so that its attacher retries at once.
	RetryAttach

	// The kinds of requests only (protocol.Request). Reads are consistent: no cache answers them.

	// GetObject reads the object Object/Key.
	GetObject
	// ListObjects reads all of kind Object; claims only in the namespace Key.
	ListObjects
	// ListPods reads all pods bound to Node.
	ListPods
	// ConfirmAttachment gives the VolumeAttachment Key of UID a new annotation value, and certainly a new
	// version.
	ConfirmAttachment
	// PatchNode makes Change in Node's status. Waiting requests share a patch: see protocol.Compose.
	PatchNode
	// DecideTicket writes Phase, the message of Verdict, Epoch, and a chosen Node, into the status of the
	// VolumeTicket Key of UID, at exactly Version. A driver that knows an equal status answers Done at
	// once.
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
	Rule        string      // Unreport, DeleteAttachment: of force, or empty
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
	Who         string      // MarkWanted: the user, for messages
	// Successor, under a Rule about a former machine, is the systemUUID of the present machine, which may
	// be Ready.
	Successor string
	// Beside, for CreateAttachment, is the source node of a live migration.
	Beside ledger.NodeName
	// Cooperative, for CreateAttachment: kube-controller-manager also attaches, and knows no pod with the
	// volume at the node.
	Cooperative bool

	// Urgent, for Unreport and DeleteAttachment: a user waits for the volume to leave, or for its slot.
	Urgent bool

	// WhileReady, for Unreport, ProveAbsent and WriteHold: the node must be Ready then. A ticket there
	// seems to have ended: at a silent node its holder could not have been told.
	WhileReady bool

	// Unknown, for Unreport: the kubelet's list does not tell (ledger.Snapshot.Unknown).
	Unknown bool

	// Word, for AskNode, is the node's report so far. Number is higher than all before.
	Word   ledger.NodeWord
	Number int64
	// Vacant, for the second AskNode, is since when an unknown volume is known to be absent.
	Vacant time.Time

	// Within, if set, has DeleteAttachment follow one more list of the node's pods within this time.
	Within time.Duration
}

// Plan is the next work for a volume. Its steps may run in parallel: dependent steps are planned later.
type Plan struct {
	Steps []Step
	// Apart: many nodes may share the volume, and the next plan waits only for steps at its own nodes.
	Apart bool
	// Recheck is when time alone would change the plan; zero: never.
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

// Plan returns a volume's next work.
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

// In Cooperative mode volumes without an opted-in pod or a ticket get neither a VolumeHold nor a
// VolumeAttachment. Their attachments still count for slots and exclusivity. The first user that opts in
// finds the volume in its place (holdPlan.found).

// adopted: in Cooperative mode Moorage manages a volume for an opted-in pod or a ticket, and then until it
// is at rest or another user uses it.
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

// leave plans the end of a formerly adopted volume's records. Fences of forced detaches stay while they may
// be true, and so does a note that a deleted Node named the volume.
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
