// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Action is what a step does. Each is one write to the API, or one consistent
// read, and carries its precondition.
type Action uint8

const (
	// WriteHold creates the volume's VolumeHold (Expect empty) or replaces it
	// at exactly the version Expect.
	WriteHold Action = iota + 1
	// DeleteHold deletes the VolumeHold at exactly the version Expect; one with
	// transitions after consistent lists show that no PersistentVolume is of the
	// volume, and no VolumeAttachment has a name that the volume leads to.
	DeleteHold
	// CreateAttachment creates the VolumeAttachment under its deterministic
	// name; that it exists already is no error. The ledger is told AttachSent
	// before, and must take it in; and AttachResolved when it is proved what
	// came of it.
	CreateAttachment
	// Report puts the volume into volumesAttached, after proving that its
	// attachment UID is attached, not being deleted, and newer than any
	// delete in flight.
	Report
	// Unreport takes the volume out of volumesAttached, in a write that
	// proves it is not in volumesInUse; under a Rule it proves instead the
	// version of the Node at which the rule held; without a NodeUID, that the
	// Node does not exist. Its success is told to the ledger as Unreported.
	Unreport
	// ConfirmUnwanted lists the node's pods, consistently and after the write
	// of Unreport, and tells the ledger Unwanted, or what it found.
	ConfirmUnwanted
	// DeleteAttachment deletes the attachment at exactly UID and Version;
	// under a Rule only after a consistent read shows the Node still at
	// NodeVersion, where the rule holds, or not to exist when there is no
	// NodeUID.
	DeleteAttachment
	// RemovePod deletes a terminating pod of an out-of-service node at once,
	// as pod garbage collection would later.
	RemovePod
	// ProveAbsent proves what Unreport proves, and writes nothing: where
	// volumesAttached is another controller's, or seems not to name a volume that needs no
	// attachment, the volume must not be in it.
	ProveAbsent
	// MarkWanted tells the attacher that the volume is wanted again where an
	// attachment, of exactly this UID, is being deleted.
	MarkWanted
	// FindAttachment reads consistently whether the attachment is there whose
	// creation was sent, and tells the ledger AttachResolved.
	FindAttachment
	// RetryAttach writes to an attachment, of exactly this UID, whose attach has failed:
	// a change of the object has its attacher try again at once.
	RetryAttach
	// AskNode asks a node's moorage-node to look once more what is there, by a higher
	// number in the NodeVolumes that Word is of, at exactly its version. Its success is
	// told to the ledger as LookAsked.
	AskNode
	// OrderUnstage orders a node's moorage-node to unstage the volume, by Number, in the
	// NodeVolumes that Word is of, at exactly its version. Its success is told to the ledger
	// as UnstageSent.
	OrderUnstage
	// WithdrawUnstage takes that order out of the NodeVolumes that Word is of, at exactly
	// its version: from then on nothing is begun by it.
	WithdrawUnstage
)

func (a Action) String() string {
	return [...]string{"none", "write-hold", "delete-hold", "create-attachment", "report", "unreport",
		"confirm-unwanted", "delete-attachment", "remove-pod", "prove-absent", "mark-wanted", "find-attachment", "retry-attach", "ask-node",
		"order-unstage", "withdraw-unstage"}[a]
}

// Step is one thing to do.
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
	Limit       int32       // CreateAttachment: how many slots the driver has at the node; 0: not checked
	NodeID      string      // CreateAttachment: the driver's name for the node
	Transitions int64       // CreateAttachment: the fencing token, 0 for a shared volume
	Hold        ledger.Hold // WriteHold; DeleteHold: as it is
	Expect      string      // WriteHold, DeleteHold: the version to replace
	Who         string      // MarkWanted: who wants the volume, for people
	// Former, of a step under a Rule, is the systemUUID of the machine that the rule is
	// about, where another machine has its node's name: that one may be Ready.
	Former string
	// Beside, of a CreateAttachment, is the node that a live migration comes from.
	Beside ledger.NodeName
	// Cooperative, of a CreateAttachment, says that kube-controller-manager attaches, too, and knows
	// of no pod that has the volume at the node.
	Cooperative bool

	// Urgent, of an Unreport and a DeleteAttachment, says that somebody waits for the volume to leave the node, or for
	// its slot there.
	Urgent bool

	// WhileReady, of an Unreport, a ProveAbsent and a WriteHold, says that the node must be Ready when that is done. A ticket
	// has had the volume there, and has ended as far as this process knows: had it ended while the node was silent, nobody
	// could have told its holder.
	WhileReady bool

	// Doubted, of an Unreport, says that the kubelet's list does not tell whether the volume is in
	// use: that it does not name it ends no doubt.
	Doubted bool

	// Word, of an AskNode, OrderUnstage and WithdrawUnstage, is what the node says so far,
	// and Number is higher than all that were asked and ordered with before.
	Word   ledger.NodeWord
	Number int64
	// Vacant, of an AskNode for the second look that ends a doubt, is since when nothing of the
	// volume is known to be there.
	Vacant time.Time

	// Within, if set, has DeleteAttachment list the node's pods once more, and
	// end within this time of it.
	Within time.Duration
}

// Plan is what to do next about a volume. Steps may be done in parallel; what
// must follow one of them is planned when its effect is seen.
type Plan struct {
	Steps []Step
	// Apart says that what is planned at one node does not depend on what is under way
	// at another, because many nodes may share the volume: the next plan need not wait
	// for steps at other nodes than its own.
	Apart bool
	// Recheck is when time alone would change the plan. Zero: it won't.
	Recheck time.Time
}

// planner carries one Plan's state from stage to stage.
type planner struct {
	Arbiter
	snapshot  ledger.Snapshot
	volume    *ledger.Volume
	now       time.Time
	exclusive bool
	onlyHeld  bool        // it is exclusive by its hold alone, see keptByHold
	shared    bool        // it is exclusive only as long as a ticket keeps it detached
	required  bool        // the driver's volumes need attachments
	anySlot   bool        // whether there is a slot is not asked
	hold      ledger.Hold // as it should be
	plan      Plan

	place *ledger.NodeVolume // of which the own attachment was asked for last
	ownAt *ledger.Attachment
}

// own is the own attachment of a NodeVolume. It is kept, since each look at one works out its name.
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

// Plan says what to do next about one volume.
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
		return p.plan // nothing rests on a hold that may not say any more what is known of it
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

// awaitFence looks again when a node that does not answer is fenced by time.
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

// wanted says whether the volume is to be at a node: somebody there uses it,
// and the volume is theirs.
func (p *planner) wanted(place *ledger.NodeVolume) bool {
	if p.exclusive && p.hold.Node != place.Node && !p.migratesTo(place) {
		return false
	}
	return p.hasRight(place, false)
}

// migratesTo says whether a live migration may have the volume at a second
// node.
func (p *planner) migratesTo(place *ledger.NodeVolume) bool {
	return migratesTo(p.snapshot, p.volume, place)
}

// migrationWritten says whether the hold as written names a live migration at a node: the next leader knows then why the
// volume is at two.
func (p *planner) migrationWritten(place *ledger.NodeVolume) bool {
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return migrating(p.snapshot, p.volume, u) && namedInHold(p.snapshot, p.volume, u)
	})
}

func migratesTo(s ledger.Snapshot, v *ledger.Volume, place *ledger.NodeVolume) bool {
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool { return migrating(s, v, u) })
}

// hasRight says whether anybody at a node has a right to the volume. A fence ends the
// rights of all at a node; of tickets there, which have yet to be told, they count when asked for (promised).
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

// hasGrantee says whether a ticket at a node has the volume.
func (p *planner) hasGrantee(place *ledger.NodeVolume) bool {
	return slices.ContainsFunc(place.Users, p.isGrantee)
}

// isGrantee says whether a user is a ticket that is granted.
func (p *planner) isGrantee(u ledger.User) bool {
	return u.Pod == "" && claimStateOf(p.snapshot, u) == active
}

// outranked says whether a user must yield to somebody.
func (p *planner) outranked(u ledger.User, n ledger.NodeName) bool {
	for range p.outrankers(u, n) {
		return true
	}
	return false
}

// outrankers are those to whom a user must yield: at its own node those with other parameters, and
// those at other nodes. Not those whom Grant
// passes over (view.others, view.blocks), at a fenced node, or bound to a node where they
// merely wait for others who have the volume and need not yield to them; and nobody where a
// live migration has the volume beside the user.
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

// waits says whether a pod is bound to a node where it merely waits for others who have the
// volume at another one.
func (p *planner) waits(u ledger.User, place *ledger.NodeVolume) bool {
	if u.Pod == "" || p.migratesTo(place) {
		return false
	}
	w := view{arbiter: p.Arbiter, snapshot: p.snapshot, request: requestOf(p.snapshot, u), node: place.Node, now: p.now, yielded: true}
	has := w.has(p.volume)
	return has != "" && has != place.Node
}

// unproved says whether a volume without VolumeAttachments is at the node that its hold gives it to, or that it
// was to be put into volumesAttached of, for all that was proved. What is known of volumesAttached may be older
// than a report of this process that got no answer, or of the leader before: only a read, or a write that finds it
// as read, shows that the volume is not in it. A node that is not managed goes by no volumesAttached.
func (p *planner) unproved(place *ledger.NodeVolume) bool {
	if !p.volume.ID.NoAttach() || !place.WithoutAttachment() || p.Cooperative || place.Proof.Stage != ledger.ProofNone {
		return false
	}
	n := p.snapshot.Node(place.Node)
	return n == nil || !n.Exists || n.Managed
}

// mayBeAttached says whether the volume may still be at a node, whoever wants it; or, of
// ledger.Detached, whether a ticket has not been told yet that it may be attached again.
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
	// In use without an attachment: a kubelet that waits for one when it has
	// a pod for it, else evidence that the volume is mounted all the same.
	// One that needs no attachment is where its hold has it, until the kubelet's word
	// or a rule of force says otherwise.
	if !place.InUse && !place.WithoutAttachment() || !unused(p.snapshot, place) {
		return false
	}
	usage := p.evidenceOf(p.snapshot, p.volume, place, p.now).usage
	return usage != usageFenced && usage != usageNone
}
