// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Object is the kind of object that GetObject or ListObjects reads.
type Object uint8

// The kinds that are read.
const (
	Tickets           Object = iota + 1 // Key is namespace/name
	Claims                              // Key is namespace/name
	PersistentVolumes                   // Key is the name, and so on
	Nodes
	Attachments
	Holds     // Volume is set, Key is its name for people
	NodeWords // NodeMountReport; Key is the node's name
)

func (k Object) String() string {
	return [...]string{"nothing", "tickets", "claims", "pvs", "nodes", "attachments", "holds", "nodemountreports"}[k]
}

// Request is one request to the API server, in terms of the ledger.
type Request struct {
	Kind   rules.Kind
	Object Object
	Key    string
	Node   ledger.NodeName
	// Volume is the request's volume, if any.
	Volume ledger.VolumeID
	// UID and Version are preconditions of the object.
	UID, Version string
	Fact         ledger.Event
	Beside       ledger.NodeName
	Who          string
	Change       Change
	Phase        ledger.TicketPhase
	Verdict      rules.Verdict
	Epoch        int64
	// Granted are the volumes that DecideTicket with phase TicketGranted gives (ledger.Ticket.Granted).
	Granted []ledger.VolumeID
	// Interruptions is the count that DecideTicket writes.
	Interruptions int64
	// YieldingSince, in seconds since 1970, is when the ticket was asked to let go of its volumes, for
	// DecideTicket; 0: not asked.
	YieldingSince int64
	// Look is the number that AskNode writes.
	Look int64
	// EpochOnly has DecideTicket write Epoch only.
	EpochOnly bool
	// Until, if set, is an earlier deadline than the driver's: by then the API server must be done with the
	// request.
	Until time.Time
}

// Result is the end of a request.
type Result uint8

// The ends of requests.
const (
	// Done: the API server carried it out.
	Done Result = iota + 1
	// NotFound: no such object.
	NotFound
	// Exists: there is an object of that name.
	Exists
	// Conflict: a precondition did not hold, nothing happened.
	Conflict
	// Refused: for good, by rights or a policy; nothing happened.
	Refused
	// NotSent: it certainly did not reach the API server: no connection, no lease, no turn.
	NotSent
	// Unknown: no answer in time, or an unclear one. It may have had its effect, or have it later.
	Unknown
	// Unfit: nothing was sent, since the request does not fit the driver's newer facts: a Change that
	// Compose calls stale, or an inline volume that no pod names any more.
	Unfit
)

func (r Result) String() string {
	return [...]string{"none", "done", "not found", "exists", "conflict", "refused", "not sent", "unknown", "unfit"}[r]
}

// Answer is the outcome of a request. Facts are the answer's objects. The driver has already taken them in.
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
