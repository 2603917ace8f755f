// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/moorage-dev/moorage/test/internal/breaks"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func operating() []guard {
	return []guard{
		{
			Scenario: "operations-plain",
			Rule:     "the judge: a volume that is made from a snapshot has what was flushed when that was made",
			Breaks:   []breaks.Break{"test/sandbox/disk/service Service.note: if e.Call == diskapi.WorkBegan { e.Write = &diskapi.WriteMark{} }"},
			Expect:   []string{"write-lost"},
		},
		{
			Scenario: "operations-refused",
			Rule:     "the scheduler chooses the node of a ticket that leaves it open",
			Breaks:   []breaks.Break{"internal/protocol place: return Task{}, false"},
			Expect:   []string{"snapshot nightly is ready", "the volume of grows has 2Gi"},
		},
		{
			Scenario: "operations-populator",
			Rule:     "I1: a volume counts where it may still be, whoever claims it",
			Breaks:   shareAll,
			Expect:   []string{"two-nodes", "was over before the attach began"},
		},
		{
			Scenario: "operations-many",
			Rule:     "I2: nothing is placed or granted past the driver's limit",
			Breaks:   slotTooMany,
			Expect:   []string{"over-limit", "the volumes have all slots, and the other tickets wait for one"}, // the driver has no room at the node
		},
		{
			Scenario: "operation-snapshot",
			Rule:     "an operation's ticket is there until the operation is over",
			Breaks:   []breaks.Break{`internal/operation underWay: _, cut, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "creationTime"); return o.GetDeletionTimestamp() == nil && !cut`},
			Expect:   []string{"torn-operation", "is satisfied", "stayed attached", "is ready"},
		},
		{
			Scenario: "operation-group",
			Rule:     "a group whose volumes are at several nodes is told so",
			Breaks:   []breaks.Break{`internal/operation decision.apart: return ""`},
			Expect:   []string{"has an event OperationHeld"},
		},
		{
			Scenario: "operation-group",
			Rule:     "the members of a group have no tickets of their own",
			Breaks:   []breaks.Break{"internal/operation SnapshotOf: o = o.DeepCopy(); o.SetAnnotations(nil)"},
			Expect:   []string{"is attached nowhere", "has both volumes"},
		},
		{
			Scenario: "cooperative-operation", Mode: sandbox.Cooperative,
			Rule:   "in Cooperative mode volumes are attached for tickets, too",
			Breaks: []breaks.Break{"internal/rules attachPlan.startable: if p.Cooperative && !place.UsedByPod() { return false }"},
			Expect: []string{"is satisfied"},
		},
		{
			Scenario: "operation-yields",
			Rule:     "a clone is there until its claim is bound",
			Breaks:   []breaks.Break{"internal/operation cloneOf: return nil"},
			Expect:   []string{"there is a ticket for the Clone"},
		},
		{
			Scenario: "operation-expansion",
			Rule:     "an operation that does not come to its end leaves its volume to others",
			Breaks:   []breaks.Break{"internal/operation pause: return 0"},
			Expect:   []string{"pod db2 runs", "OperationPaused"},
		},
		{
			Scenario: "operation-offline",
			Rule:     "a volume that is to be detached for an operation stays so until that is over",
			Breaks:   []breaks.Break{"internal/operation decision.due: defer func() { detached = false }()"},
			Expect:   []string{"OperationHeld", "is not attached for db2", "the volume of data has 2Gi"},
		},
	}
}
