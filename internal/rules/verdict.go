// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Outcome is the answer in one word. The zero value is Deny, so that a verdict
// nobody filled in permits nothing.
type Outcome uint8

const (
	// Deny: not at this node as things are. Another node may do.
	Deny Outcome = iota
	// Wait: it will do once others let go or evidence comes in.
	Wait
	// Allow: it will do now.
	Allow
)

func (o Outcome) String() string { return [...]string{"deny", "wait", "allow"}[o] }

// Verdict is an answer and why. Reasons are sorted and without duplicates.
type Verdict struct {
	Outcome Outcome
	Reasons []Reason
}

// Allowed says whether the answer is Allow.
func (v Verdict) Allowed() bool { return v.Outcome == Allow }

// First returns the reason that matters most, or the zero Reason.
func (v Verdict) First() Reason {
	if len(v.Reasons) == 0 {
		return Reason{}
	}
	return v.Reasons[0]
}

// SeenFrom is the verdict as people of a namespace may see it: whoever of
// another namespace stands in the way is not named. Two PersistentVolumes of
// one disk can bring that about; the attach/detach controller only counts such
// pods, too (attachdetach/reconciler, reportMultiAttachError).
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

// refuse makes a verdict of reasons: Deny when one of them denies, else Wait;
// Allow without any.
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

// atMost keeps so many of the sorted reasons of each code.
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

// compareReasons puts what denies before what waits, then sorts by name.
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

// Reason is one reason of a verdict or a wait. Which fields are set depends on
// the code.
type Reason struct {
	Code    ledger.Code
	Volume  ledger.VolumeID
	Claim   string          // the claim's or the pod volume's name, for people
	Node    ledger.NodeName // the node meant: the holder, or the one that is full
	Driver  string
	Who     ledger.Requester // who holds, or who is next
	Used    int32            // slots
	Limit   int32            // slots
	Needed  int32            // slots
	Policy  string           // the AttachPolicy that sets Limit; empty where the CSINode sets Limit
	GRPC    int32            // gRPC code of a driver's error
	Detail  string           // a driver's own words
	Seconds int64            // until a rule's time is over
	Since   int64            // seconds since 1970, by the API server's clock; 0 when not known
	Until   int64            // seconds since 1970, by the controller's clock
	Brake   Brake            // why a time of force does not run
	// NodeDeleted says that Node has no Node object any more, whatever its machine does.
	NodeDeleted bool
	// Left says that the volume was left at Node without a VolumeAttachment, when its detach failed.
	Left bool
}
