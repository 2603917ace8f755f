// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/moorage-dev/moorage/test/sandbox"

// operating lists the guards of what storage systems do with volumes besides attaching them.
func operating() []guard {
	return []guard{
		{
			Scenario: "operations-plain",
			Rule:     "the judge: a volume that is made from a snapshot has what was flushed when that was made",
			Edits: []edit{{
				File: "test/sandbox/disk/service/operate.go",
				Old:  "note.Write = &diskapi.WriteMark{Flushed: s.writes.OnDisk(note.Volume)}",
				New:  "note.Write = &diskapi.WriteMark{}",
			}},
			Expect: []string{"write-lost"},
		},
		{
			Scenario: "operations-refused",
			Rule:     "the scheduler chooses the node of a ticket that leaves it open",
			Edits: []edit{{
				File: "internal/protocol/decide.go",
				Old:  "if !t.Wherever || t.Phase != ledger.TicketPending ||",
				New:  "if t.Wherever || t.Phase != ledger.TicketPending ||",
			}},
			Expect: []string{"snapshot nightly is ready", "the volume of grows has 2Gi"},
		},
		{
			Scenario: "operations-populator",
			Rule:     "I1: a volume counts where it may still be, whoever claims it",
			Edits: []edit{{
				File: "internal/rules/access.go",
				Old:  "return a != ledger.AccessMany && a != ledger.AccessUnset",
				New:  "return false",
			}},
			Expect: []string{"two-nodes", "was over before the attach began"},
		},
		{
			Scenario: "operations-many",
			Rule:     "I2: nothing is placed or granted past the driver's limit",
			Edits: []edit{{
				File: "internal/rules/limit.go",
				Old:  "return reason, after > limit",
				New:  "return reason, after > limit+1",
			}},
			Expect: []string{"over-limit", "the volumes have all slots, and the other tickets wait for one"}, // the driver has no room at the node
		},
		{
			Scenario: "operation-snapshot",
			Rule:     "an operation's ticket is there until the operation is over",
			Edits: []edit{{
				File: "internal/operation/objects.go",
				Old:  "return o.GetDeletionTimestamp() == nil && !Ready(o) }",
				New:  "_, cut, _ := unstructured.NestedFieldNoCopy(o.Object, \"status\", \"creationTime\"); return o.GetDeletionTimestamp() == nil && !cut }",
			}},
			Expect: []string{"torn-operation", "is satisfied", "stayed attached", "is ready"},
		},
		{
			Scenario: "operation-group",
			Rule:     "a group whose volumes are at several nodes is told so",
			Edits: []edit{{
				File: "internal/operation/volumes.go",
				Old:  "	if len(nodes) < 2 {\n",
				New:  "	if len(nodes) > 0 {\n",
			}},
			Expect: []string{"has an event OperationHeld"},
		},
		{
			Scenario: "operation-group",
			Rule:     "the members of a group have no tickets of their own",
			Edits: []edit{{
				File: "internal/operation/objects.go",
				Old:  "|| member ||",
				New:  "|| member && false ||",
			}},
			Expect: []string{"is attached nowhere", "has both volumes"},
		},
		{
			Scenario: "cooperative-operation", Mode: sandbox.Cooperative,
			Rule: "in Cooperative mode volumes are attached for tickets, too",
			Edits: []edit{{
				File: "internal/rules/planattach.go",
				Old:  "return slices.ContainsFunc(place.Users, func(u ledger.User) bool { return claimStateOf(p.snapshot, u) == active })",
				New:  "return slices.ContainsFunc(place.Users, func(u ledger.User) bool { return claimStateOf(p.snapshot, u) == active && (u.Pod != \"\" || !p.Cooperative) })",
			}},
			Expect: []string{"is satisfied"},
		},
		{
			Scenario: "operation-yields",
			Rule:     "a clone is there until its claim is bound",
			Edits: []edit{{
				File: "internal/operation/objects.go",
				Old:  "	w.Operation = ledger.OperationClone\n",
				New:  "	w.Operation = ledger.OperationSnapshot\n",
			}},
			Expect: []string{"there is a ticket for the Clone"},
		},
		{
			Scenario: "operation-expansion",
			Rule:     "an operation that does not come to its end leaves its volume to others",
			Edits: []edit{{
				File: "internal/operation/past.go",
				Old:  "a.Not = d.Now.Add(pause(d.Now.Sub(a.held), a.timeout, a.Failures))",
				New:  "a.Not = d.Now",
			}},
			Expect: []string{"pod db2 runs", "OperationPaused"},
		},
		{
			Scenario: "operation-offline",
			Rule:     "a volume that is to be detached for an operation stays so until that is over",
			Edits: []edit{{
				File: "internal/operation/decide.go",
				Old:  "Wherever: !detached, Detached: detached,",
				New:  "Wherever: true, Detached: detached && false,",
			}},
			Expect: []string{"OperationHeld", "is not attached for db2", "the volume of data has 2Gi"},
		},
	}
}
