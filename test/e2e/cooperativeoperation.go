// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func cooperativeOperation() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "cooperative-operation",
		Doc: "Beside the stock attach/detach controller, with a driver that makes snapshots only while the volume is attached: " +
			"a volume that nobody has is attached for its snapshot, and detached when that is made.",
		Modes: []sandbox.Mode{sandbox.Cooperative},
		Shape: needing("snapshot"),
		Takes: 30 * time.Second,
		Run: tell(func(s *story) {
			s.policy("needs", attachedFor(v1alpha1.OperationSnapshot))
			s.placed("idle", "worker-1")
			s.snapshotOf("of-idle", "idle")
			ticket := s.operationTicket(v1alpha1.OperationSnapshot)
			s.satisfied(ticket)
			s.snapshotReady("of-idle")
			s.noTicket(ticket)
			s.leavesEveryNode("idle")
			s.say("the volume that nobody had was attached for its snapshot, and is detached again")
			s.noPolicy("needs")
		}),
	}
}
