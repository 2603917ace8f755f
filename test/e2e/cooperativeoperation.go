// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// cooperativeOperation guards that the ticket of an operation whose volume nobody has says what
// would allow it where volumes are attached for pods only, and that those of pods' volumes go on.
func cooperativeOperation() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "cooperative-operation",
		Doc: "The driver makes snapshots only while the volume is attached, and beside the stock attach/detach controller Moorage attaches for bound pods only. A snapshot of a volume that nobody has waits, and is told what would allow it; " +
			"one of a volume that a pod has is made meanwhile. When a pod has the first volume, too, its snapshot is made.",
		Modes: []sandbox.Mode{sandbox.Cooperative},
		Shape: needing("snapshot"),
		Takes: 30 * time.Second,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			s.policy("needs", attachedFor(v1alpha1.OperationSnapshot))
			s.placed("idle", here)
			s.claim("data")
			s.podAt(here, "db", "data")
			s.runs("db")
			attached := s.published(s.handle("idle"))
			s.snapshotOf("of-idle", "idle")
			ticket := s.operationTicket(v1alpha1.OperationSnapshot)
			s.eventOf("VolumeSnapshot", "of-idle", "OperationHeld", "Standalone mode")
			s.must(s.ticketTells(ticket, "AttachedForPods"))
			s.snapshotOf("of-data", "data")
			s.snapshotReady("of-data")
			s.expect(ready(s.View.Snapshot(s.Namespace, "of-idle")) != nil && s.published(s.handle("idle")) == attached,
				"the volume that nobody has was not attached", "its snapshot is %v", s.View.Snapshot(s.Namespace, "of-idle").Object["status"])
			s.say("the snapshot of db's volume is made; the other one waits, and is told why")
			s.podAt(there, "late", "idle")
			s.snapshotReady("of-idle")
			s.noTicket(ticket)
			s.runs("late")
			s.say("a pod has the other volume, and its snapshot is made")
			s.noPolicy("needs")
		}),
	}
}
