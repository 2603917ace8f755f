// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// If pods have a group's volumes at several nodes, nothing moves.
func operationGroup() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "operation-group",
		Doc: "The driver makes snapshots only while the volume is attached. Two volumes of a group are in use at two nodes: their ticket waits, which the group snapshot is told, and the group is made nevertheless, while nothing is attached or detached for it. " +
			"When nobody has the two, a group of them has one ticket, which has both at one node.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: needing("snapshot"),
		Takes: 45 * time.Second,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			s.policy("needs", attachedFor(v1alpha1.OperationSnapshot))
			at := map[string]string{"one": here, "two": there}
			for claim, node := range at {
				s.claim(claim)
				s.label(claim, "app", "shop")
				s.podAt(node, "db-"+claim, claim)
			}
			for claim := range at {
				s.runs("db-" + claim)
			}
			mend := s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.CreateGroupSnapshot}, Action: diskapi.Hang})
			s.groupSnapshotOf("apart", "app", "shop")
			ticket := s.operationTicket(v1alpha1.OperationSnapshot)
			for claim, node := range at {
				s.eventOf("VolumeGroupSnapshot", "apart", "OperationHeld", s.handle(claim)+" at "+node)
			}
			t, err := s.seenTicket(ticket)
			s.must(err)
			s.expect(!meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TicketGranted), "the ticket has neither volume", "its conditions are %+v", t.Status.Conditions)
			mend()
			s.expect(len(s.groupReady("apart")) == 2, "the group has both volumes", "it has not")
			s.noTicket(ticket)
			for claim, node := range at {
				s.stayedAt(claim, node)
				s.must(s.Running("db-" + claim))
			}
			s.say("a group was made of a volume at %s and one at %s, which no ticket can have both, and nothing was moved for it", here, there)

			for claim := range at {
				s.remove("db-" + claim)
			}
			for claim := range at {
				s.gone("db-" + claim)
				s.leavesEveryNode(claim)
			}
			s.groupSnapshotOf("both", "app", "shop")
			ticket = s.operationTicket(v1alpha1.OperationSnapshot)
			t = s.untilTicket(ticket, "has both volumes", func(t *v1alpha1.VolumeTicket) bool {
				return len(t.Spec.Volumes) == 2 && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TicketSatisfied)
			})
			for claim := range at {
				s.expect(s.attachment(claim, t.Node()) != nil, "the volume of "+claim+" is at "+t.Node(), "it is not")
			}
			s.groupReady("both")
			s.noTicket(ticket)
			for claim := range at {
				s.leavesEveryNode(claim)
			}
			s.say("when nobody had the two, one ticket had both at %s, for a snapshot of both", t.Node())
			s.noPolicy("needs")
		}),
	}
}

func (s *story) stayedAt(claim, node string) {
	handle := s.handle(claim)
	here := len(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, node))
	s.expect(s.published(handle) == here, "the volume of "+claim+" was attached at "+node+" only", "it was attached elsewhere")
	s.never(diskapi.ControllerUnpublish, handle, node)
}
