// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

type Verb = rules.Kind

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

const (
	BindPod Verb = rules.Kinds + iota
	// ReportUse says ready, unless NotReady. Same omits the list InUse.
	ReportUse
	FinishPod
	// StampAttachment is the attacher's finalizer and node-id annotation.
	StampAttachment
	// MarkAttached: attachment Key is attached, or why not (Error).
	MarkAttached
	MarkDetached
	WriteReported
	// Unsupported is a step that a player of a controller can't do: it breaks the run.
	Unsupported
)

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
	// For BindPod, InUse are the volumes that the scheduler counted at the node before.
	InUse              []ledger.VolumeID
	Same               bool
	NotReady           bool
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
	// Since is when the sender's last read was served (Answer.At): of the node for a forced deletion, or of
	// PersistentVolumes for a VolumeHold's deletion. For BindPod, the scheduler has seen the tickets up to
	// it; for DecideTicket, the controller the pods. 0: unknown.
	Since int64
	// Decided is the world's version at a DecideTicket's decision; 0: unknown.
	Decided int64
	NodeID  string
	// WasID is the node's ID that a VolumeAttachment must have, with TestsID: moorage-attacher
	// tests it.
	WasID   string
	TestsID bool
}

// Looks: the answer may cause a request that no precondition can tie to it (Since).
func (r Request) Looks() bool {
	return r.Do == GetObject && r.Kind == Nodes || r.Do == ListObjects && r.Kind == PersistentVolumes
}

func kindOf(k protocol.Object) Kind {
	return map[protocol.Object]Kind{
		protocol.Tickets: Tickets, protocol.Claims: Claims, protocol.PersistentVolumes: PersistentVolumes,
		protocol.Nodes: Nodes, protocol.Attachments: Attachments, protocol.Holds: Holds, protocol.NodeWords: NodeWords,
	}[k]
}

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

func SentPatch(read ledger.NodeState, p protocol.NodePatch) Request {
	return Request{Do: PatchNode, Node: read.Name, Read: read, Patch: p}
}

// Adds: no precondition of the late request fails by itself, or it adds something unknown to other
// requests' preconditions. The controller waits until it must be over.
func (r Request) Adds() bool {
	return r.Do == CreateAttachment || r.Do == PatchNode && r.Patch.Adds()
}

// Detaches: no precondition stops a late detach, by force although the Lease was renewed, or of a volume
// that needs no attachment although a user was told that it has it.
func (r Request) Detaches() bool {
	late := func(c protocol.Change) bool { return c.Rule != "" || !c.Add && c.Volume.NoAttach() }
	return r.Do == DropAttachment && r.Since != 0 || r.Do == PatchNode && !r.Manager && slices.ContainsFunc(r.Patch.Changes, late)
}

type Code uint8

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

// Facts are the objects after the request; for a list, all. At is the world's version when it was served.
type Answer struct {
	Code  Code
	Facts []ledger.Event
	At    int64
}

func answer(facts ...ledger.Event) Answer { return Answer{Code: OK, Facts: facts} }

func (c Code) Result() protocol.Result {
	return [...]protocol.Result{protocol.Done, protocol.NotFound, protocol.Exists, protocol.Conflict, protocol.Conflict, protocol.Refused}[c]
}
