// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Action is the effect of a step. Each is one write to the API, or one consistent read, with its
// precondition.
type Action uint8

const (
	// WriteHold creates the volume's VolumeHold (Expect empty), or replaces the version Expect.
	WriteHold Action = iota + 1
	// DeleteHold deletes the version Expect of the VolumeHold.
	DeleteHold
	// CreateAttachment creates the VolumeAttachment under its deterministic name; an existing object is no
	// error. The ledger is told AttachSent before, and must take it in; it is told AttachResolved when the
	// outcome is proved.
	CreateAttachment
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
	// DeleteAttachment deletes the attachment at exactly UID and Version. Under a Rule a consistent read
	// must first show the Node at NodeVersion, where the rule holds, or without a NodeUID that it does not
	// exist.
	DeleteAttachment
	// RemovePod deletes a terminating pod of an out-of-service node at once, as pod garbage collection
	// would later.
	RemovePod
	// ProveAbsent proves what Unreport proves, and writes nothing. It is used if volumesAttached is another
	// controller's, or seems to omit a volume that needs no attachment: the volume must be absent from it.
	ProveAbsent
	// MarkWanted tells the attacher that the volume is wanted again while an attachment, of exactly this
	// UID, is being deleted.
	MarkWanted
	// FindAttachment reads consistently whether a sent creation has made the attachment, and tells the
	// ledger AttachResolved.
	FindAttachment
	// RetryAttach writes to an attachment, of exactly this UID, with a failed attach: its attacher retries
	// at once after a change of the object.
	RetryAttach
	// AskNode asks a node's moorage-node to look once more, by a higher number in the NodeVolumes of Word,
	// at exactly its version. On success the ledger is told LookAsked.
	AskNode
	// OrderUnstage orders a node's moorage-node to unstage the volume, by Number, in the NodeVolumes of
	// Word, at exactly its version. On success the ledger is told UnstageSent.
	OrderUnstage
	// WithdrawUnstage takes that order out of the NodeVolumes of Word, at exactly its version: afterwards
	// moorage-node begins nothing by it.
	WithdrawUnstage
)

func (a Action) String() string {
	return [...]string{"none", "write-hold", "delete-hold", "create-attachment", "report", "unreport",
		"confirm-unwanted", "delete-attachment", "remove-pod", "prove-absent", "mark-wanted", "find-attachment", "retry-attach", "ask-node",
		"order-unstage", "withdraw-unstage"}[a]
}

// Step is one write or read.
type Step struct {
	Do     Action
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

	// Word, for AskNode, OrderUnstage and WithdrawUnstage, is the node's report so far. Number is higher
	// than all earlier questions and orders.
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

// planner carries the state of one Plan from stage to stage.
type planner struct {
	Arbiter
	snapshot  ledger.Snapshot
	volume    *ledger.Volume
	now       time.Time
	exclusive bool
	onlyHeld  bool        // exclusive only by its hold, see keptByHold
	shared    bool        // exclusive only while a ticket keeps it detached
	required  bool        // the driver's volumes need attachments
	anySlot   bool        // ignore whether there is a slot
	hold      ledger.Hold // as it should be
	plan      Plan

	place *ledger.NodeVolume // whose own attachment was asked for last: va
	ownAt *ledger.Attachment
}

// isUnknown says whether the volume is unknown at a node.
func (p *planner) isUnknown(place *ledger.NodeVolume) bool {
	return p.snapshot.IsUnknown(p.volume, place)
}

// own is the own attachment of a NodeVolume. It is cached, since each lookup computes its name.
func (p *planner) own(place *ledger.NodeVolume) *ledger.Attachment {
	if place == nil || place != p.place {
		p.place, p.ownAt = place, place.Own()
	}
	return p.ownAt
}

func (a Arbiter) planner(s ledger.Snapshot, v *ledger.Volume, now time.Time) *planner {
	p := &planner{
		Arbiter: a, snapshot: s, volume: v, now: now,
		exclusive: exclusive(access(s, v, v.Access)), required: s.AttachRequired(v.ID.Driver),
	}
	p.shared = p.exclusive && !exclusive(told(s, v, v.Access))
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
	for i := range v.NodeVolumes {
		place := &v.NodeVolumes[i]
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
		p.repair(place)
		if p.wanted(place) || p.hasGrantee(place) {
			p.awaitFence(place)
		}
	}
	p.attachAbandoned()
	return p.plan
}

// awaitFence plans a check when time fences a silent node.
func (p *planner) awaitFence(place *ledger.NodeVolume) {
	if f := fence(p.snapshot, p.volume, place.Node, p.now); f.Left > 0 {
		p.recheck(f.Left)
	}
}

func (p *planner) add(s Step) {
	s.Volume = p.volume.ID
	p.plan.Steps = append(p.plan.Steps, s)
}

func (p *planner) recheck(in time.Duration) {
	if at := p.now.Add(in); p.plan.Recheck.IsZero() || at.Before(p.plan.Recheck) {
		p.plan.Recheck = at
	}
}

// wanted says whether the volume must be at a node: a user there has a right to it.
func (p *planner) wanted(place *ledger.NodeVolume) bool {
	if p.exclusive && p.hold.Node != place.Node && !p.migratesTo(place) {
		return false
	}
	return p.hasRight(place, false)
}

// migratesTo says whether a live migration may have the volume at a second node.
func (p *planner) migratesTo(place *ledger.NodeVolume) bool {
	return migratesTo(p.snapshot, p.volume, place)
}

// migrationWritten says whether the written hold names a live migration at a node: the next leader then
// knows why the volume is at two nodes.
func (p *planner) migrationWritten(place *ledger.NodeVolume) bool {
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return migrating(p.snapshot, p.volume, u) && namedInHold(p.snapshot, p.volume, u)
	})
}

func migratesTo(s ledger.Snapshot, v *ledger.Volume, place *ledger.NodeVolume) bool {
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool { return migrating(s, v, u) })
}

// hasRight says whether a user at a node has a right to the volume. A fence ends all rights at a node; with
// promised, tickets there that were not told yet still count.
func (p *planner) hasRight(place *ledger.NodeVolume, promised bool) bool {
	if place == nil || !p.required {
		return false
	}
	if fenced(p.snapshot, p.volume, place.Node, p.now) {
		return promised && p.hasGrantee(place)
	}
	for _, u := range place.Users {
		switch claimStateOf(p.snapshot, u) {
		case active, terminating:
			if !p.outranked(u, place.Node) {
				return true
			}
		case requested, noClaim:
		}
	}
	return false
}

func (p *planner) hasGrantee(place *ledger.NodeVolume) bool {
	return slices.ContainsFunc(place.Users, p.isGrantee)
}

func (p *planner) isGrantee(u ledger.User) bool {
	return u.Pod == "" && claimStateOf(p.snapshot, u) == active
}

// outranked says whether a user must yield.
func (p *planner) outranked(u ledger.User, n ledger.NodeName) bool {
	for range p.outrankers(u, n) {
		return true
	}
	return false
}

// outrankers yields the users to which a user must yield: at its own node users with other parameters, and
// users at other nodes. It omits users that Grant passes over (view.others, view.blocks), users at a fenced
// node, and pods that wait at their node for other holders that need not yield to them. It yields nothing
// if a live migration has the volume beside the user.
func (p *planner) outrankers(u ledger.User, n ledger.NodeName) iter.Seq2[ledger.NodeName, Request] {
	return func(yield func(ledger.NodeName, Request) bool) {
		t := p.snapshot.Ticket(u.Ticket)
		if t == nil || !t.Type.Yields() {
			return
		}
		for _, other := range p.displacers(t) {
			if !yield(n, requestOf(p.snapshot, other)) {
				return
			}
		}
		if !p.exclusive || p.migratesTo(p.volume.NodeVolume(n)) {
			return
		}
		for i := range p.volume.NodeVolumes {
			place := &p.volume.NodeVolumes[i]
			if place.Node == n || fenced(p.snapshot, p.volume, place.Node, p.now) {
				continue
			}
			for _, other := range place.Users {
				r := requestOf(p.snapshot, other)
				if claimStateOf(p.snapshot, other) != active || !yields(p.snapshot, u, r) || p.waits(other, place) {
					continue
				}
				if !yield(place.Node, r) {
					return
				}
			}
		}
	}
}

// waits says whether a pod is bound to a node where it waits for the volume's holders at another node.
func (p *planner) waits(u ledger.User, place *ledger.NodeVolume) bool {
	if u.Pod == "" || p.migratesTo(place) {
		return false
	}
	w := view{arbiter: p.Arbiter, snapshot: p.snapshot, request: requestOf(p.snapshot, u), node: place.Node, now: p.now, yielded: true}
	has := w.has(p.volume)
	return has != "" && has != place.Node
}

// unproved says whether a volume without VolumeAttachments may be at its hold's node, or in a node's
// volumesAttached, for lack of proof. The known volumesAttached may be older than an unanswered report of
// this process or of the last leader: only a read, or a write on that version, proves the absence. An
// unmanaged node ignores volumesAttached.
func (p *planner) unproved(place *ledger.NodeVolume) bool {
	if !p.volume.ID.NoAttach() || !place.WithoutAttachment() || p.Cooperative || place.Proof.Stage != ledger.ProofNone {
		return false
	}
	n := p.snapshot.Node(place.Node)
	return n == nil || !n.Exists || n.Managed
}

// mayBeAttached says whether the volume may still be at a node, with or without users. For ledger.Detached
// it says whether a ticket was not told yet that the volume may be attached again.
func (p *planner) mayBeAttached(place *ledger.NodeVolume) bool {
	if place.Node == ledger.Detached {
		return p.inhabited(place)
	}
	if place.Sent {
		return true
	}
	if place.HasAttachments() || place.Reported {
		return true
	}
	if p.unproved(place) {
		return p.evidenceOf(p.snapshot, p.volume, place, p.now).usage != usageFenced
	}
	// In use without an attachment: either a kubelet waits for the attachment for a pod, or this shows that
	// the volume is mounted all the same. A volume that needs no attachment is at its hold's node until the
	// kubelet's word or a rule of force says otherwise.
	if !place.MayBeInUse() && !place.WithoutAttachment() || !unused(p.snapshot, place) {
		return false
	}
	usage := p.evidenceOf(p.snapshot, p.volume, place, p.now).usage
	return usage != usageFenced && usage != usageNone
}
