// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// migrationFails guards that a volume is at two nodes only during its live migration, however that ends.
func migrationFails() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "migration-fails",
		Doc: "Three live migrations of a volume that come to nothing, and one whose source dies. Rolled back: the ticket is deleted, and the volume leaves the target. The target dies: the ticket is deleted, and the volume leaves it once it is out of service. " +
			"Each time the machine at the source has its volume throughout. The source dies: the machine runs at the target, and the volume is there alone.",
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Exclusive: true,
		Shape: func(shape *sandbox.Shape) {
			failingNodes(shape)
			shape.MoorageAttacher, shape.LenientDisks = true, true
		},
		Takes:   2 * time.Minute,
		Timeout: 8 * time.Minute,
		Run: tell(func(s *story) {
			const from, to = "worker-1", "worker-2"
			s.claim("data")
			s.podAt(from, "vm", "data")
			s.runs("vm")
			handle, before := s.handle("data"), s.held("data", from)
			s.policy("migrate", v1alpha1.AttachPolicySpec{LiveMigration: new(true)})
			times := 0
			migrates := func(name string) {
				times++
				s.ticketOfType(name, v1alpha1.TicketLiveMigration, to, "data")
				s.satisfied(name)
				s.besideSource(from, to)
				s.must(s.ExpectMigrations(s.ctx, handle, to, times))
			}
			sourceAlone := func() {
				s.leavesNode("data", to)
				s.expect(s.held("data", from) == before, "the source has had the volume throughout", "its transitions are not %d", before)
				s.must(s.Running("vm"))
			}
			migrates("rolled-back")
			s.removeTicket("rolled-back")
			sourceAlone()
			s.say("rolled back: the volume is at %s alone, where vm runs", from)
			migrates("target-dies")
			s.must(s.Cluster.PowerOff(s.ctx, to))
			s.nodeIs(to, false)
			s.removeTicket("target-dies")
			s.taint(to, outOfService())
			sourceAlone()
			s.must(s.Cluster.PowerOn(s.ctx, to))
			s.nodeIs(to, true)
			s.untaint(to, outOfService())
			s.say("the target died: the volume is at %s alone, where vm runs", from)
			migrates("source-dies")
			s.must(s.Cluster.PowerOff(s.ctx, from))
			s.nodeIs(from, false)
			s.taint(from, outOfService())
			s.podAt(to, "vm-moved", "data")
			s.runs("vm-moved")
			s.removeTicket("source-dies")
			s.leavesNode("data", from)
			s.expect(s.held("data", to) > before, "the volume has changed its node", "its transitions are not more than %d", before)
			s.until("the volume is at two nodes no more", func() error {
				if s.attachment("data", to) == nil {
					return sandbox.Never("it is at none")
				}
				if s.attachment("data", from) != nil {
					return errors.New("it is at the source")
				}
				return nil
			})
			s.say("the source died: vm-moved runs on %s, which has the volume alone", to)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.untaint(from, outOfService())
			s.noPolicy("migrate")
		}),
	}
}
