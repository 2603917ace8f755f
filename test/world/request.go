// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Verb is a kind of request: the controller's, or one below.
type Verb = rules.Kind

// The controller's requests.
const (
	GetObject         = rules.GetObject
	ListObjects       = rules.ListObjects
	ListPods          = rules.ListPods
	PutHold           = rules.WriteHold
	DropHold          = rules.DeleteHold
	CreateAttachment  = rules.CreateAttachment
	ConfirmAttachment = rules.ConfirmAttachment
	MarkWanted        = rules.MarkWanted
	DropAttachment    = rules.DeleteAttachment
	PatchNode         = rules.PatchNode
	RemovePod         = rules.RemovePod
	DecideTicket      = rules.DecideTicket
	DropTicket        = rules.DeleteTicket
	AskNode           = rules.AskNode
)

// The requests of other components.
const (
	// BindPod binds the pod UID to Node, as a scheduler does.
	BindPod Verb = rules.Kinds + iota
	// ReportUse is a kubelet's status: it is ready, unless NotReady, and uses
	// InUse, unless Same, which leaves the list out of the patch.
	ReportUse
	// FinishPod is a kubelet's report that all containers of the pod UID, which is being deleted, have
	// ended.
	FinishPod
	// StampAttachment is the attacher's finalizer and node-id annotation.
	StampAttachment
	// MarkAttached is the attacher's report that attachment Key is attached, or why not (Error).
	MarkAttached
	// MarkDetached removes the attacher's finalizer of attachment Key, or says why it is not detached
	// (Error).
	MarkDetached
	// WriteReported replaces Node's volumesAttached by InUse.
	WriteReported
	// Unsupported is a step that a player of a controller can't do: it breaks the run.
	Unsupported
)

// Request is one request to the API server.
type Request struct {
	Do     Verb
	Kind   Kind
	Key    string
	Node   ledger.NodeName
	Volume ledger.VolumeID
	// UID and Version, if set, must be the object's.
	UID, Version string
	Fact         ledger.Event
	// Read is the Node on which Patch was composed.
	Read  ledger.NodeState
	Patch protocol.NodePatch
	// InUse is a list of volumes; for BindPod, the volumes that the scheduler counted at the node before.
	InUse []ledger.VolumeID
	Same  bool
	// NotReady: the kubelet lives, and reports not ready.
	NotReady bool
	// SystemUUID and BootID are the machine and boot that a kubelet reports.
	SystemUUID, BootID string
	Error              ledger.CallError
	Phase              ledger.TicketPhase
	Reason             string
	Epoch              int64
	Granted            []ledger.VolumeID
	Interruptions      int64
	YieldingSince      int64
	Look               int64
	EpochOnly          bool // DecideTicket: write nothing else
	Stamp              bool // CreateAttachment: with the attacher's finalizer
	// Manager: kube-controller-manager's request, which is not judged.
	Manager bool
	// Within: it is not carried out after its sender's deadline.
	Within bool
	// Since is when the last answer to its sender was served (Answer.At): a read of the node before a
	// forced deletion of a VolumeAttachment, or a list of PersistentVolumes before the deletion of a
	// VolumeHold. For BindPod it is the version up to which the scheduler has seen the tickets, for
	// DecideTicket the version up to which the controller had seen the pods at its decision. 0: unknown.
	Since int64
	// Decided is the world's version at a DecideTicket's decision; 0: unknown.
	Decided int64
	NodeID  string
	// WasID is the node's ID that a VolumeAttachment must have, with TestsID: moorage-attacher
	// tests it.
	WasID   string
	TestsID bool
}

// Looks says whether the answer to a request may cause another that no precondition can tie to it (Since).
func (r Request) Looks() bool {
	return r.Do == GetObject && r.Kind == Nodes || r.Do == ListObjects && r.Kind == PersistentVolumes
}

// kinds are the world's names of the controller's kinds.
func kindOf(k protocol.Object) Kind {
	return map[protocol.Object]Kind{
		protocol.Tickets: Tickets, protocol.Claims: Claims, protocol.PersistentVolumes: PersistentVolumes,
		protocol.Nodes: Nodes, protocol.Attachments: Attachments, protocol.Holds: Holds, protocol.NodeWords: NodeWords,
	}[k]
}

// Sent is a controller's request as sent to this world's API server. stamp says whether an attachment
// is created with the attacher's finalizer. A change of a node is sent by SentPatch.
func Sent(r protocol.Request, stamp bool) Request {
	sent := Request{
		Do: r.Kind, Kind: kindOf(r.Object), Key: r.Key, Node: r.Node, Volume: r.Volume, UID: r.UID, Version: r.Version,
		Fact: r.Fact, Phase: r.Phase, Reason: string(r.Verdict.First().Code), Epoch: r.Epoch, Granted: r.Granted, Interruptions: r.Interruptions, YieldingSince: r.YieldingSince, Look: r.Look, EpochOnly: r.EpochOnly, Within: !r.Until.IsZero(),
	}
	switch {
	case r.Kind == GetObject && sent.Kind == Pods:
		sent.Key = r.UID
	case r.Kind == CreateAttachment:
		a, _ := r.Fact.(ledger.Attachment)
		sent.Stamp, sent.Node = stamp && a.NodeID != "", r.Beside
		if !sent.Stamp {
			a.NodeID = ""
		}
		sent.Fact = a
	}
	return sent
}

// SentPatch is one patch of a Node that was read.
func SentPatch(read ledger.NodeState, p protocol.NodePatch) Request {
	return Request{Do: PatchNode, Node: read.Name, Read: read, Patch: p}
}

// Adds says whether a late request has no precondition that fails by itself, or adds something unknown to
// other requests' preconditions: the controller waits until it must be over.
func (r Request) Adds() bool {
	return r.Do == CreateAttachment || r.Do == PatchNode && r.Patch.Adds()
}

// Detaches says whether a request takes a volume from a node without a precondition that fails when it
// comes late: by force, although the kubelet has renewed its Lease; or a volume that needs no attachment,
// although a user was told that it has it.
func (r Request) Detaches() bool {
	late := func(c protocol.Change) bool { return c.Rule != "" || !c.Add && c.Volume.NoAttach() }
	return r.Do == DropAttachment && r.Since != 0 || r.Do == PatchNode && !r.Manager && slices.ContainsFunc(r.Patch.Changes, late)
}

// Code is how a request ended.
type Code uint8

// The ends of requests.
const (
	OK Code = iota
	NotFound
	Exists
	Conflict // another version or UID
	Invalid  // a test of a patch failed
	// Forbidden: a foreign rule refuses it, perhaps without end.
	Forbidden
)

func (c Code) String() string {
	return [...]string{"ok", "not found", "exists", "conflict", "invalid", "forbidden"}[c]
}

// Answer is the API server's answer. Facts are the objects after the request; for a list, all. At is
// the world's version when it was served.
type Answer struct {
	Code  Code
	Facts []ledger.Event
	At    int64
}

func answer(facts ...ledger.Event) Answer { return Answer{Code: OK, Facts: facts} }

// Result is an answer's result for the controller.
func (c Code) Result() protocol.Result {
	return [...]protocol.Result{protocol.Done, protocol.NotFound, protocol.Exists, protocol.Conflict, protocol.Conflict, protocol.Refused}[c]
}
