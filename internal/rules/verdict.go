// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Outcome is the answer in one word. The zero value is Deny, which permits nothing.
type Outcome uint8

const (
	// Deny: not here now; another node may do.
	Deny Outcome = iota
	// Wait: possible after others let go, or with more evidence.
	Wait
	// Allow: possible now.
	Allow
)

func (o Outcome) String() string { return [...]string{"deny", "wait", "allow"}[o] }

// Verdict is an answer with its reasons, sorted and without duplicates.
type Verdict struct {
	Outcome Outcome
	Reasons []Reason
}

// Allowed says whether the answer is Allow.
func (v Verdict) Allowed() bool { return v.Outcome == Allow }

// First returns the most important reason, or the zero Reason.
func (v Verdict) First() Reason {
	if len(v.Reasons) == 0 {
		return Reason{}
	}
	return v.Reasons[0]
}

// SeenFrom is the verdict for one namespace: it does not name users of others, as two PersistentVolumes of
// one disk can have. The attach/detach controller also only counts such pods (attachdetach/reconciler,
// reportMultiAttachError).
func (v Verdict) SeenFrom(namespace string) Verdict {
	hidden := slices.Clone(v.Reasons)
	for i := range hidden {
		if who := &hidden[i].Who; who.Namespace != namespace {
			who.Namespace, who.Name = "", ""
		}
	}
	v.Reasons = hidden
	return v
}

func allow() Verdict { return Verdict{Outcome: Allow} }

// refuse makes a verdict of reasons: Deny if one denies, else Wait; Allow without reasons.
func refuse(reasons []Reason) Verdict {
	if len(reasons) == 0 {
		return allow()
	}
	slices.SortStableFunc(reasons, compareReasons)
	reasons = atMost(MaxVolumes, slices.Compact(reasons))
	outcome := Wait
	for _, r := range reasons {
		if outcomeOf(r.Code) == Deny {
			outcome = Deny
		}
	}
	return Verdict{outcome, reasons}
}

// atMost keeps the first few of the sorted reasons of each code.
func atMost(most int, reasons []Reason) []Reason {
	if len(reasons) <= most {
		return reasons
	}
	same, last := 0, ledger.Code("")
	return slices.DeleteFunc(reasons, func(r Reason) bool {
		if r.Code != last {
			same, last = 0, r.Code
		}
		same++
		return same > most
	})
}

// compareReasons puts denying reasons before waiting ones, then sorts by name.
func compareReasons(a, b Reason) int {
	return cmp.Or(
		cmp.Compare(outcomeOf(a.Code), outcomeOf(b.Code)),
		cmp.Compare(a.Code, b.Code),
		a.Volume.Compare(b.Volume),
		cmp.Compare(a.Node, b.Node),
		cmp.Compare(a.Claim, b.Claim),
		cmp.Compare(a.Who.UID, b.Who.UID),
	)
}

// Reason is one reason of a verdict or a wait. The code determines the set fields.
type Reason struct {
	Code    ledger.Code
	Volume  ledger.VolumeID
	Claim   string          // of the claim or the pod's volume, for messages
	Node    ledger.NodeName // the holder's node, or the full one
	Driver  string
	Who     ledger.Requester // or the next user
	Used    int32            // slots
	Limit   int32            // slots
	Needed  int32            // slots
	Policy  string           // of the Limit; empty: from the CSINode
	GRPC    int32            // gRPC code of a driver's error
	Detail  string           // the driver's own text
	Seconds int64            // until a rule's time is over
	Since   int64            // Unix seconds of the API server; 0: unknown
	Until   int64            // Unix seconds of the controller
	Brake   Brake            // why a time of force does not run
	// NodeDeleted: Node has no Node object. Its machine may run.
	NodeDeleted bool
	// Left: left at Node without a VolumeAttachment after a failed detach.
	Left bool
}
