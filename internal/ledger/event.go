// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

// Event is one fact to take in: an object's present state, an object's end, or a proof by this process. The
// types that implement it are the facts of this package and the types below.
type Event interface {
	apply(l *Ledger, now time.Time, t *Touched)
}

// The objects that are gone.
type (
	// PodGone says that no pod with this UID exists.
	PodGone struct{ UID string }
	// ClaimGone says that the claim does not exist.
	ClaimGone struct{ Key ClaimKey }
	// PersistentVolumeGone says that the PersistentVolume does not exist.
	PersistentVolumeGone struct{ Name string }
	// StorageClassGone says that the class does not exist.
	StorageClassGone struct{ Name string }
	// DriverGone says that the CSIDriver does not exist.
	DriverGone struct{ Name string }
	// NodeGone says that the Node does not exist.
	NodeGone struct{ Name NodeName }
	// NodeDriversGone says that the CSINode does not exist.
	NodeDriversGone struct{ Node NodeName }
	// AttachmentGone says that the VolumeAttachment does not exist.
	AttachmentGone struct{ Name string }
	// NodeWordGone says that the node has no NodeMountReport; with UID, none of that UID, since another one may
	// have been made and seen meanwhile.
	NodeWordGone struct {
		Node NodeName
		UID  string
	}
	// PolicyGone says that the AttachPolicy does not exist.
	PolicyGone struct{ Name string }
	// HoldGone says that the volume has no VolumeHold.
	HoldGone struct{ Volume VolumeID }
	// TicketGone says that the VolumeTicket with this UID does not exist; empty: no ticket of the name
	// exists.
	TicketGone struct {
		ID  TicketID
		UID string
	}
	// TicketReleased ends a ticket that this process has deleted. Late events about the deleted object
	// change nothing.
	TicketReleased struct {
		ID TicketID
		// UID is the deleted object's; empty: any ticket of the name
		UID string
	}
)

// NodeLease is a read of a node's Lease, which its kubelet renews while it runs. It is taken in only for a
// known node.
type NodeLease struct {
	Node NodeName
	// Renewed is spec.renewTime in microseconds since 1970, by the kubelet's clock; 0 without a Lease. It
	// is only compared for equality, never with our clocks.
	Renewed int64
}

// LeaseUnread says that a node's Lease could not be read since its last read: the API server does not
// answer, or this process was stopped. It is taken in only for a known node that is not Ready.
type LeaseUnread struct {
	Node NodeName
	// Refused: the API server answers, and refuses the read.
	Refused bool
}

// TicketInDoubt says that a grant of a pending ticket in its present version may still arrive, from a
// former leader or this process. Until the ticket has another version, which makes such a grant fail, it
// keeps the slots that it asks for from all other tickets.
type TicketInDoubt struct {
	ID  TicketID
	UID string
}

// GrantSent says that this process is about to grant a pending ticket, at exactly a version. From then on
// the grant may have had its effect, until another version of the ticket is seen, or GrantResolved. It is
// taken in only while the ticket has that version (Ticket.Granting says whether it was): otherwise the
// grant would fail.
type GrantSent struct {
	ID           TicketID
	UID, Version string
}

// GrantResolved is the proof that the grant of GrantSent has had its effect, which the ledger knows, or can
// have none any more. It is taken in only while the ticket has the version of that grant: later another
// grant may be in flight.
type GrantResolved struct {
	ID           TicketID
	UID, Version string
}

// TookOver says that this process begins to lead. It does not know which volumes earlier leaders reported
// at nodes that are gone since (Fence.Reported), nor which volumes tickets had at nodes that fell silent.
// Both are possible from here on, also if the holds change. Epoch is the number of its term.
type TookOver struct{ Epoch int64 }

// HoldBoots says whether the API server drops the bootID from VolumeHolds, since its definition of them is
// older than this process. Then no step waits for a hold with a boot.
type HoldBoots struct{ Dropped bool }

// HoldSeen is a VolumeHold.
type HoldSeen struct {
	Volume VolumeID
	Hold   Hold
}

// HoldDropped says that this process has deleted a volume's empty VolumeHold at a version. It is gone when
// the watch says so (HoldGone): earlier events come first.
type HoldDropped struct {
	Volume  VolumeID
	Version string
}

// Unreported is the proof that one write showed the volume unused at the node and, from then on, not
// reported as attached there.
type Unreported struct {
	Volume       VolumeID
	Node         NodeName
	UID, Version string // of the VolumeAttachment as known before the write; empty without one
	// Forced: by a rule of force, regardless of the node's lists.
	Forced bool
	// Unknown: the volume was unknown at the node (Snapshot.Unknown), and stays so.
	Unknown bool
	// Ready: the write also showed the node Ready.
	Ready bool
}

// ReadyShown says that a read has shown a node Ready; it was sent after the end of each ended ticket that
// had the volume there, as far as this process knows.
type ReadyShown struct {
	Volume VolumeID
	Node   NodeName
}

// Unwanted is the proof that a consistent list of the node's pods, made after
// the write behind Unreported, showed no unfinished pod that wants the volume.
type Unwanted struct {
	Volume       VolumeID
	Node         NodeName
	UID, Version string
}

// ReportSent says that this process sends a patch that puts a volume into volumesAttached of a node. It
// voids the proofs about the volume there: the node may name it from now on, without an event.
type ReportSent struct {
	Volume VolumeID
	Node   NodeName
}

// UnreportSent says that this process is about to send a patch that takes a volume without attachments out
// of a node's volumesAttached: until UnreportResolved it may be gone from there, though the node names it.
type UnreportSent struct {
	Volume VolumeID
	Node   NodeName
}

// UnreportResolved says that such a patch was not sent, was answered, or can have no effect any more, and
// that the ledger knows its outcome.
type UnreportResolved struct {
	Volume VolumeID
	Node   NodeName
}

// NotReported says that a read of a Node, without a report of the volume there in flight, has shown that
// volumesAttached omits the volume: an unanswered report (ReportSent) came to nothing.
type NotReported struct {
	Volume VolumeID
	Node   NodeName
}

// HoldUnanswered says that a creation, replacement or deletion of a volume's hold got no answer: it may
// have been carried out, or may be yet. Nothing relies on the hold's content until a newer one is seen
// (HoldSeen), its end is seen (HoldGone, HoldDropped), or HoldAnswered.
type HoldUnanswered struct {
	Volume  VolumeID
	Version string // of the replaced or deleted hold; empty: a creation
	Deletes bool
}

// HoldAnswered says that a read has shown a volume's hold after all of its writes that were unanswered at
// some time could no longer be carried out.
type HoldAnswered struct {
	Volume VolumeID
	Writes uint16 // Volume.HoldUnanswered at that time: if there are more by now, nothing has ended
}

// LookAsked says that this process has asked a node's moorage-node for a fresh look after the write of
// Unreported: NodeWord.Looked reaches Look after the look.
type LookAsked struct {
	Volume       VolumeID
	Node         NodeName
	UID, Version string // of the VolumeAttachment
	Look         int64
	// Vacant is the Snapshot.Vacant behind the second look, after which the volume is no longer unknown.
	Vacant time.Time
}

// LookRefused says that the API server refuses questions to a node's moorage-node, for want of rights or by
// a webhook, until LookAsked.
type LookRefused struct{ Node NodeName }

// AttachSent says that this process is about to send the creation of the own attachment of a volume at a
// node. From then on the volume may be there: the place stays, and has its slot, until AttachResolved. It
// is taken in only while a pod, a granted ticket or a left volume keeps the slot there (VolumeOnNode.Sent
// says whether it was): otherwise the slot may have been given away since the decision, and nothing may be
// sent. With a Limit it is also refused while that many volumes of the driver have a slot at the node
// (NodeDriver.Occupied): of two creations decided at once for the last slot, only the first is sent.
type AttachSent struct {
	Volume VolumeID
	Node   NodeName
	Limit  int32 // 0: none
}

// AttachResolved is the proof that the creation of AttachSent has had its effect, which the ledger knows,
// or can have none any more: it was refused, or a consistent read, made after the API server had given it
// up, did not find it.
type AttachResolved struct {
	Volume VolumeID
	Node   NodeName
	Failed bool // it made no attachment
}

// Complete says that this process has taken in the first list of each kind. Before, an unseen pod may have
// used a volume and gone: times without users count from here at the earliest. Only the first Complete
// counts.
type Complete struct{}

// NoForceOnTimeout says that no volume is detached by force after AfterPodGone unless its policy has a
// time: the counterpart of kube-controller-manager's --disable-force-detach-on-timeout, for all
// drivers.
type NoForceOnTimeout struct{}

// CutOffBelieved says whether this process accepts a Node's condition that a storage has cut it off as
// proof. The controller does only after a comparison with the NetworkFences; schedulers do from the
// beginning.
type CutOffBelieved struct{ Believed bool }

// RefusalsOver ends all refusals for want of room that drivers last repeated at Until or before: the room
// may have changed without a sign.
type RefusalsOver struct{ Until time.Time }

// Touched names the keys with possibly changed decisions.
type Touched struct {
	// Own says that this process noted or proved the event during its own step. The step's owner decides
	// again, but has no news: a failed step is not retried because of it.
	Own     bool
	Volumes []VolumeID
	Nodes   []NodeName // slots, limits, health
	Tickets []TicketID
	// Pods are the UIDs of pods that changed, or with volumes that may lead elsewhere, or nowhere for
	// another reason than before.
	Pods []string
	// Policies are the names of AttachPolicies that have changed.
	Policies []string
}

func (t *Touched) volume(v VolumeID) {
	if v.IsZero() {
		return
	}
	for _, w := range t.Volumes {
		if w == v {
			return
		}
		if len(t.Volumes) > 64 { // a node's or driver's worth: duplicates cost less than the search
			break
		}
	}
	t.Volumes = append(t.Volumes, v)
}

func (t *Touched) node(n NodeName) {
	if n == "" {
		return
	}
	for _, m := range t.Nodes {
		if m == n {
			return
		}
	}
	t.Nodes = append(t.Nodes, n)
}

func (t *Touched) pod(uid string) {
	if len(t.Pods) > 64 || !slices.Contains(t.Pods, uid) { // as in volume
		t.Pods = append(t.Pods, uid)
	}
}

func (t *Touched) ticket(id TicketID) {
	for _, x := range t.Tickets {
		if x == id {
			return
		}
		if len(t.Tickets) > 64 { // as in volume
			break
		}
	}
	t.Tickets = append(t.Tickets, id)
}
