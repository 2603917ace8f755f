// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

// Event is an object's state, its end, or this process's proof, of this package's types.
type Event interface {
	apply(l *Ledger, now time.Time, t *Touched)
}

// The objects that are gone.
type (
	// PodGone says that no pod has this UID.
	PodGone struct{ UID string }
	// ClaimGone: the claim does not exist.
	ClaimGone struct{ Key ClaimKey }
	// PersistentVolumeGone: it does not exist.
	PersistentVolumeGone struct{ Name string }
	// StorageClassGone: the class does not exist.
	StorageClassGone struct{ Name string }
	// DriverGone: no CSIDriver exists.
	DriverGone struct{ Name string }
	// NodeGone: the Node does not exist.
	NodeGone struct{ Name NodeName }
	// NodeDriversGone: no CSINode exists.
	NodeDriversGone struct{ Node NodeName }
	// AttachmentGone: the VolumeAttachment does not exist.
	AttachmentGone struct{ Name string }
	// NodeWordGone: the node has no NodeMountReport, or none of UID, since another may be seen meanwhile.
	NodeWordGone struct {
		Node NodeName
		UID  string
	}
	// PolicyGone: the AttachPolicy does not exist.
	PolicyGone struct{ Name string }
	// HoldGone: the volume has no VolumeHold.
	HoldGone struct{ Volume VolumeID }
	// TicketGone: the VolumeTicket with this UID does not exist; empty: no ticket of the name exists.
	TicketGone struct {
		ID  TicketID
		UID string
	}
	// TicketReleased ends a ticket that this process deleted. Late events about it change nothing.
	TicketReleased struct {
		ID TicketID
		// UID is empty for any ticket of the name.
		UID string
	}
)

// NodeLease is a read of a node's Lease. Unknown nodes ignore it.
type NodeLease struct {
	Node NodeName
	// Renewed is spec.renewTime in microseconds since 1970, by the kubelet's clock; 0: no Lease. It is
	// compared for equality only.
	Renewed int64
}

// LeaseUnread: a Lease could not be read since its last read. The API server is silent, or this process was
// stopped. Only a known node that is not Ready takes it.
type LeaseUnread struct {
	Node NodeName
	// Refused: the API server answers with a refusal.
	Refused bool
}

// TicketInDoubt: a former leader's or an own grant may still arrive. Until a new version fails that grant,
// the pending ticket keeps its slots from others.
type TicketInDoubt struct {
	ID  TicketID
	UID string
}

// GrantSent: this process will grant a pending ticket at exactly this version; it counts only at that
// version (see Ticket.Granting). The grant may have its effect until another version or GrantResolved.
type GrantSent struct {
	ID           TicketID
	UID, Version string
}

// GrantResolved proves that the grant's effect is known or can't come. It counts only at the grant's
// version: later another grant may be in flight.
type GrantResolved struct {
	ID           TicketID
	UID, Version string
}

// TookOver: this process begins to lead. Earlier leaders' reports at gone nodes (Fence.Reported), and
// tickets' volumes at silent nodes, are possible from now on, even if holds change. Epoch is its term.
type TookOver struct{ Epoch int64 }

// HoldBoots says whether the API server's older definition of VolumeHolds drops the bootID. Then no step
// waits for a hold with a boot.
type HoldBoots struct{ Dropped bool }

// HoldSeen is a VolumeHold.
type HoldSeen struct {
	Volume VolumeID
	Hold   Hold
}

// HoldDropped: this process deleted an empty VolumeHold. It is gone at HoldGone: earlier events come first.
type HoldDropped struct {
	Volume  VolumeID
	Version string
}

// Unreported proves that a write showed the volume unused and, from then on, not in volumesAttached.
type Unreported struct {
	Volume       VolumeID
	Node         NodeName
	UID, Version string // of the VolumeAttachment before the write, or empty
	// Forced: by a rule of force, despite the node's lists.
	Forced bool
	// Unknown: the volume was and stays unknown at the node (Snapshot.Unknown).
	Unknown bool
	// Ready: the write also showed the node Ready.
	Ready bool
}

// ReadyShown: a read showed a node Ready, sent after the end of each known ended ticket with the volume
// there.
type ReadyShown struct {
	Volume VolumeID
	Node   NodeName
}

// Unwanted proves that a consistent list of pods, after Unreported's write, showed no unfinished pod that
// wants the volume.
type Unwanted struct {
	Volume       VolumeID
	Node         NodeName
	UID, Version string
}

// ReportSent: this process sends a patch that adds to volumesAttached. It voids the proofs: the node may
// name the volume from now on, without an event.
type ReportSent struct {
	Volume VolumeID
	Node   NodeName
}

// UnreportSent: this process sends a patch that removes a volume without attachments from volumesAttached.
// Until UnreportResolved it may be gone there, though the node names it.
type UnreportSent struct {
	Volume VolumeID
	Node   NodeName
}

// UnreportResolved: the patch is unsent, answered or void, and its outcome known.
type UnreportResolved struct {
	Volume VolumeID
	Node   NodeName
}

// NotReported: a read of a Node, with no report in flight, omitted the volume. An unanswered ReportSent had
// no effect.
type NotReported struct {
	Volume VolumeID
	Node   NodeName
}

// HoldUnanswered: a write of a hold got no answer, and may still happen. Nothing relies on the content
// until HoldSeen with a newer version, HoldGone, HoldDropped or HoldAnswered.
type HoldUnanswered struct {
	Volume  VolumeID
	Version string // replaced or deleted; empty: a creation
	Deletes bool
}

// HoldAnswered: a read showed a hold after all unanswered writes could no longer happen.
type HoldAnswered struct {
	Volume VolumeID
	Writes uint16 // Volume.HoldUnanswered then: more by now end nothing
}

// LookAsked: this process asked moorage-node after Unreported's write: NodeWord.Looked then reaches Look.
type LookAsked struct {
	Volume       VolumeID
	Node         NodeName
	UID, Version string // of the VolumeAttachment
	Look         int64
	// Vacant is the Snapshot.Vacant behind a second look, the end of unknown.
	Vacant time.Time
}

// LookRefused: until LookAsked, the API server refuses questions to moorage-node, by rights or a webhook.
type LookRefused struct{ Node NodeName }

// AttachSent: this process will create the own attachment. The volume may be there, and has its slot, until
// AttachResolved. A pod, a granted ticket or a left volume must keep the slot (see VolumeOnNode.Sent), or
// nothing may be sent. It is refused if Limit volumes of the driver have a slot (NodeDriver.Occupied): of
// two decisions for the last slot only the first is sent.
type AttachSent struct {
	Volume VolumeID
	Node   NodeName
	Limit  int32 // 0: none
}

// AttachResolved proves that the creation's effect is known or can't come: it was refused, or a consistent
// read, after the API server gave it up, did not find it.
type AttachResolved struct {
	Volume VolumeID
	Node   NodeName
	Failed bool // it made no attachment
}

// Complete: the first list of each kind is in. Times without users count from here at the earliest, since
// unseen pods may have used volumes. Only the first Complete counts.
type Complete struct{}

// NoForceOnTimeout forbids forced detaches after AfterPodGone without a policy's time, like
// kube-controller-manager's --disable-force-detach-on-timeout.
type NoForceOnTimeout struct{}

// CutOffBelieved says whether a cut-off condition is proof. The controller first compares NetworkFences;
// schedulers believe it from the beginning.
type CutOffBelieved struct{ Believed bool }

// RefusalsOver ends refusals for lack of room last repeated by Until: the room may have changed without a
// sign.
type RefusalsOver struct{ Until time.Time }

// Touched names keys whose decisions may have changed.
type Touched struct {
	// Own: this process caused the event in its step. A failed step is not retried for it.
	Own     bool
	Volumes []VolumeID
	Nodes   []NodeName // slots, limits, health
	Tickets []TicketID
	// Pods are UIDs of pods that changed, or whose volumes may lead elsewhere, or nowhere for a new reason.
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
		if len(t.Volumes) > 64 { // duplicates cost less than the search
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
