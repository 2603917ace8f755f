// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Verb is the kind of a request.
type Verb uint8

// The requests of the controller. Reads are consistent: no cache answers them. The comments name the fields
// of a Request that a verb uses.
const (
	// GetObject reads the object Kind/Key.
	GetObject Verb = iota + 1
	// ListObjects reads all objects of Kind; for Kind Claims those in the namespace Key.
	ListObjects
	// ListPods reads all pods that are bound to Node.
	ListPods
	// PutHold creates Volume's VolumeHold (Version empty), or replaces exactly Version. Fact is a
	// ledger.HoldSeen.
	PutHold
	// DropHold deletes Volume's VolumeHold at exactly Version.
	DropHold
	// CreateAttachment creates Fact, a ledger.Attachment of Volume at Node; for a live migration beside
	// the attachment at Beside.
	CreateAttachment
	// ConfirmAttachment gives the VolumeAttachment Key of UID an annotation value that it never had, so
	// that it certainly has a new version.
	ConfirmAttachment
	// MarkWanted annotates the VolumeAttachment Key of UID: the volume is wanted, and its deletion may
	// leave the volume in its place.
	MarkWanted
	// DropAttachment deletes the VolumeAttachment Key of exactly UID and Version.
	DropAttachment
	// PatchNode makes Change in the status of Node. Waiting requests of one Node share a patch: see
	// Compose.
	PatchNode
	// RemovePod deletes the pod UID at once.
	RemovePod
	// DecideTicket writes Phase with the message of Verdict, Epoch, and Node if a node is chosen, into the
	// status of the VolumeTicket Key of UID, at exactly Version. A driver that knows an equal status
	// answers Done without sending it.
	DecideTicket
	// DropTicket deletes the VolumeTicket Key of exactly UID and Version.
	DropTicket
	// AskNode writes Look, a higher number, into the spec of the NodeMountReport Key of UID, at exactly
	// Version.
	AskNode
	// Verbs is the number after the last verb.
	Verbs
)

func (v Verb) String() string {
	if v == 0 || v >= Verbs {
		return "unknown"
	}
	return [...]string{"get", "list", "list-pods", "put-hold", "drop-hold", "create-attachment", "confirm-attachment",
		"mark-wanted", "drop-attachment", "patch-node", "remove-pod", "decide-ticket", "drop-ticket", "ask-node"}[v-1]
}

// Kind is the kind of object that GetObject or ListObjects reads.
type Kind uint8

// The kinds that are read.
const (
	Tickets           Kind = iota + 1 // Key is namespace/name
	Claims                            // Key is namespace/name
	PersistentVolumes                 // Key is the name, and so on
	Nodes
	Attachments
	Holds     // Volume is set, Key is its name for people
	NodeWords // NodeMountReport; Key is the node's name
)

func (k Kind) String() string {
	return [...]string{"nothing", "tickets", "claims", "pvs", "nodes", "attachments", "holds", "nodemountreports"}[k]
}

// Request is one request to the API server, in terms of the ledger.
type Request struct {
	Do   Verb
	Kind Kind
	Key  string
	Node ledger.NodeName
	// Volume is the request's volume, if any.
	Volume ledger.VolumeID
	// UID and Version are preconditions: of the object, as the verb says.
	UID, Version string
	Fact         ledger.Event
	Beside       ledger.NodeName
	Who          string
	Change       Change
	Phase        ledger.TicketPhase
	Verdict      rules.Verdict
	Epoch        int64
	// Granted are the volumes that DecideTicket with phase TicketGranted gives to the ticket
	// (ledger.Ticket.Granted).
	Granted []ledger.VolumeID
	// Interruptions is the count of interruptions that DecideTicket writes.
	Interruptions int64
	// YieldingSince is since when the ticket is asked to let go of its volumes, in seconds since 1970, as
	// DecideTicket writes it; 0: not asked.
	YieldingSince int64
	// Look is the number that AskNode writes.
	Look int64
	// EpochOnly has DecideTicket write Epoch only.
	EpochOnly bool
	// Until, if set, is an earlier deadline than the driver's own: by then the API server must have carried
	// out the request or given it up.
	Until time.Time
}

// Result is how a request ended.
type Result uint8

// The ends of requests.
const (
	// Done: the API server carried it out.
	Done Result = iota + 1
	// NotFound: there is no such object.
	NotFound
	// Exists: an object of that name exists.
	Exists
	// Conflict: a precondition did not hold, nothing happened.
	Conflict
	// Refused: for good, by rights or by a policy; nothing happened.
	Refused
	// NotSent: it certainly did not reach the API server: no connection, no lease, no turn.
	NotSent
	// Unknown: no answer in time, or an answer that leaves the outcome open. It may have had its effect, or
	// have it later.
	Unknown
	// Unfit: the driver sent nothing, since the request does not fit its newer facts: a Change that Compose
	// calls stale, or an inline volume that no pod names any more.
	Unfit
)

func (r Result) String() string {
	return [...]string{"none", "done", "not found", "exists", "conflict", "refused", "not sent", "unknown", "unfit"}[r]
}

// Answer is the outcome of a request. Facts are the objects in the answer: the read or written object, or
// all objects of a list. The driver has already taken them in.
type Answer struct {
	Result Result
	Facts  []ledger.Event
}

func first[T ledger.Event](a Answer) (T, bool) {
	var none T
	if a.Result != Done || len(a.Facts) == 0 {
		return none, false
	}
	e, ok := a.Facts[0].(T)
	return e, ok
}
