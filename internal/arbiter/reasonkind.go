// SPDX-License-Identifier: Apache-2.0

package arbiter

import "github.com/moorage-dev/moorage/internal/ledger"

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
// said and the policy they are the same for every volume of it, at every node.
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

// WaitsForOthers says whether the verdict changes only when somebody else goes.
func (v Verdict) WaitsForOthers() bool {
	for _, r := range v.Reasons {
		if rowOf(r.Code).effect == waitsForOthers {
			return true
		}
	}
	return false
}

// LiftedByEviction says whether fewer pods on a node could lift the reason there.
func (r Reason) LiftedByEviction(n ledger.NodeName) bool {
	evict := rowOf(r.Code).evict
	return evict == anyEviction || evict == evictionThere && r.Node == n
}

// OfNodes is the reason in the words that kube-scheduler puts behind a count of
// nodes: "3 node(s) have no free slot …".
func (r Reason) OfNodes() string {
	return rowOf(r.Code).nodes + r.Message()
}
