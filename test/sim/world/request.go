// SPDX-License-Identifier: Apache-2.0

package world

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Verb is what a request does.
type Verb uint8

// The requests that anybody in the world makes.
const (
	// GetObject reads Kind/Key consistently.
	GetObject Verb = iota + 1
	// ListObjects reads all objects of Kind.
	ListObjects
	// ListPods lists Node's pods consistently.
	ListPods
	// PutHold creates (Version empty) or replaces Fact, a HoldSeen.
	PutHold
	// DropHold deletes Volume's hold at exactly Version.
	DropHold
	// CreateAttachment creates Fact, an Attachment; beside the one at Node, if
	// that is set, for a live migration.
	CreateAttachment
	// ConfirmAttachment gives attachment Key of UID a new annotation value.
	ConfirmAttachment
	// DropAttachment deletes attachment Key under Options.
	DropAttachment
	// PatchNode changes volumesAttached for Steps, as decided on Read.
	PatchNode
	// RemovePod deletes the pod UID at once.
	RemovePod
	// CreateTicket creates Fact, a Ticket.
	CreateTicket
	// DecideTicket writes Phase, Reason and Epoch at exactly Version.
	DecideTicket
	// DropTicket deletes ticket Key, if it has UID, and Version if that is set.
	DropTicket
	// BindPod binds the pod UID to Node.
	BindPod
	// ReportUse is a kubelet's status: it is ready, and uses InUse (unless
	// Same, which leaves the list out of the patch).
	ReportUse
	// FinishPod is a kubelet's word that all containers of the pod UID, which
	// is being deleted, have ended.
	FinishPod
	// StampAttachment is the attacher's finalizer and node-id annotation.
	StampAttachment
	// MarkAttached is the attacher's word that attachment Key is attached, or
	// why it is not (Error).
	MarkAttached
	// MarkDetached removes the attacher's finalizer of attachment Key, or says
	// why it is not detached (Error).
	MarkDetached
	// MarkWanted annotates attachment Key of UID: its deletion may leave the
	// volume where it is.
	MarkWanted
	// WriteReported replaces Node's volumesAttached by InUse.
	WriteReported
)

// Request is one request to the API server.
type Request struct {
	Do     Verb
	Kind   Kind
	Key    string
	Node   ledger.NodeName
	Volume ledger.VolumeID
	UID    string
	// Version is the version that the object must have.
	Version string
	Options metav1.DeleteOptions
	Fact    ledger.Event
	Read    ledger.NodeState
	Steps   []arbiter.Step
	InUse   []ledger.VolumeID
	Same    bool
	Error   ledger.CallError
	Phase   ledger.TicketPhase
	Reason  string
	Epoch   int64
	Stamp   bool // CreateAttachment: with the attacher's finalizer
	// Manager: kube-controller-manager asks, whom nobody judges.
	Manager bool
	// Within: it is not carried out after its sender's deadline.
	Within bool
	NodeID string
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
)

func (c Code) String() string {
	return [...]string{"ok", "not found", "exists", "conflict", "invalid"}[c]
}

// Answer is what the API server answers. Facts are the objects as they are
// after the request; a list's all.
type Answer struct {
	Code  Code
	Facts []ledger.Event
}

func answer(facts ...ledger.Event) Answer { return Answer{OK, facts} }
