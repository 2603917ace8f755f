// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// What the table of reasons says, for those who act on a reason or tell it.

// rowOf is the row of a code. One that is none of the arbiter's waits, and has no
// words.
func rowOf(c ledger.Code) reasonRow {
	for i := range reasonTable {
		if reasonTable[i].code == c {
			return reasonTable[i]
		}
	}
	return reasonRow{code: c, effect: waits, course: lasts, evict: noEviction, during: CallNone, nodes: unfit}
}

// Codes lists every reason code, what denies first.
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

// Transient says whether a wait for this reason usually ends by itself, soon, so
// that it is told only when it has lasted for a while.
func Transient(c ledger.Code) bool {
	return rowOf(c).course == passes
}

// DriverCodes lists the codes whose words name only a driver: without what the driver
// said they are the same for every volume of it, at every node.
func DriverCodes() []ledger.Code {
	var codes []ledger.Code
	for i := range reasonTable {
		if reasonTable[i].subject == ofDriver {
			codes = append(codes, reasonTable[i].code)
		}
	}
	return codes
}

// CallOf is the driver's call that a reason of this code is about.
func CallOf(c ledger.Code) Call {
	return rowOf(c).during
}

// LiftedByEviction says whether fewer pods on a node could lift the reason there.
func (r Reason) LiftedByEviction(n ledger.NodeName) bool {
	evict := rowOf(r.Code).evict
	return evict == anyEviction || evict == evictionThere && r.Node == n
}

// OfNodes is the reason in the words that kube-scheduler puts behind a count of
// nodes: "3 node(s) exceed max volume count: no free slot …".
func (r Reason) OfNodes() string {
	return strings.Replace(rowOf(r.Code).nodes, theDriver, r.Driver, 1) + r.Message()
}

// OfPod is the reason in the words of a scheduler that refuses the pod without a look at the
// nodes. If kube-scheduler's own plugins refuse the pod, too, the words are theirs.
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

// RefusedByStock says whether kube-scheduler's own plugins refuse the pod for one of the
// reasons, too. The pod's condition is then the same as without Moorage. These plugins know
// neither policies nor tickets.
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
