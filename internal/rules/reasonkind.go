// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The table of reasons, for code that acts on a reason or reports it.

// rowOf is the row of a code. A code outside the table waits, and has no words.
func rowOf(c ledger.Code) reasonRow {
	for i := range reasonTable {
		if reasonTable[i].code == c {
			return reasonTable[i]
		}
	}
	return reasonRow{code: c, effect: waits, course: lasts, evict: noEviction, during: CallNone, nodes: unfit}
}

// Codes lists all reason codes, denying ones first.
func Codes() []ledger.Code {
	codes := make([]ledger.Code, 0, len(reasonTable))
	for i := range reasonTable {
		codes = append(codes, reasonTable[i].code)
	}
	return codes
}

// outcomeOf says whether a reason of this code denies or waits.
func outcomeOf(c ledger.Code) Outcome {
	if rowOf(c).effect == denies {
		return Deny
	}
	return Wait
}

// Transient says whether a wait for this reason usually ends soon by itself: it is reported only after a
// while.
func Transient(c ledger.Code) bool {
	return rowOf(c).course == passes
}

// DriverCodes lists the codes with words that name only a driver: without the driver's own text they are
// equal for all its volumes and nodes.
func DriverCodes() []ledger.Code {
	var codes []ledger.Code
	for i := range reasonTable {
		if reasonTable[i].subject == ofDriver {
			codes = append(codes, reasonTable[i].code)
		}
	}
	return codes
}

// CallOf is the driver's call of a reason of this code.
func CallOf(c ledger.Code) Call {
	return rowOf(c).during
}

// LiftedByEviction says whether fewer pods on a node could lift the reason there.
func (r Reason) LiftedByEviction(n ledger.NodeName) bool {
	evict := rowOf(r.Code).evict
	return evict == anyEviction || evict == evictionThere && r.Node == n
}

// OfNodes returns the reason in the words that kube-scheduler puts behind a count of nodes: "3 node(s)
// exceed max volume count: no free slot …".
func (r Reason) OfNodes() string {
	return strings.Replace(rowOf(r.Code).nodes, theDriver, r.Driver, 1) + r.Message()
}

// OfPod returns the reason in the words of a scheduler that refuses the pod without checking nodes. If
// kube-scheduler's own plugins refuse the pod too, the words are theirs.
func (r Reason) OfPod() string {
	switch {
	case r.Code == ClaimMissing && r.Detail == "":
		return fmt.Sprintf("persistentvolumeclaim %q not found", r.Claim)
	case r.Code == ClaimLost:
		return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", r.Claim, r.Detail)
	case r.Code == ClaimDeleting:
		return fmt.Sprintf("persistentvolumeclaim %q is being deleted", r.Claim)
	case r.Code == ClaimUnbound:
		return "pod has unbound immediate PersistentVolumeClaims: " + r.Message()
	case r.Code == VolumeMissing:
		return fmt.Sprintf("persistentvolume %q not found: claim %s is bound to it", r.Detail, r.Claim)
	}
	return r.Message()
}

// RefusedByStock says whether kube-scheduler's own plugins also refuse the pod for one of the reasons. The
// pod's condition is then the same as without Moorage. These plugins know neither policies nor tickets.
func (v Verdict) RefusedByStock() bool {
	for _, r := range v.Reasons {
		switch {
		case slices.Contains([]ledger.Code{ClaimMissing, ClaimLost, ClaimDeleting, ClaimUnbound, VolumeMissing}, r.Code),
			r.Code == UsedByOtherPod && !r.Who.Ticket, r.Code == NoFreeSlot && r.Policy == "":
			return true
		}
	}
	return false
}
