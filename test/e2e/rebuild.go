// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func evictionRebuild() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "eviction-rebuild",
		Doc: "A node with a replica is cordoned. The storage system has the volume at another node by an Eviction ticket, and then by a Rebuild ticket, though a pod wants it elsewhere: a copy is not interrupted, and nobody asks it to let go. " +
			"When the rebuild is done the pod runs. A second rebuild hangs: it ends with its time, and the next pod runs.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: threeByFour,
		Takes: time.Minute,
		Run: tell(func(s *story) {
			const drained, here, there = "worker-1", "worker-2", "worker-3"
			s.placed("data", drained)
			s.cordon(drained)
			s.ticketWith("evict", v1alpha1.TicketEviction, "", "data", func(t *v1alpha1.VolumeTicket) { t.Spec.OnDrain = v1alpha1.OnDrainMove })
			s.satisfied("evict")
			s.expect(s.ticketNode("evict") != drained, "the volume is at a node that nobody empties", "it is at %s", drained)
			s.removeTicket("evict")
			s.noTicket("evict")
			s.ticketOfType("rebuild", v1alpha1.TicketRebuild, here, "data")
			s.satisfied("rebuild")
			s.podAt(there, "db", "data")
			s.until("db waits for the rebuild", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "db"), "ticket "+s.Namespace+"/rebuild")
			})
			s.newLeader()
			s.bystander(there)
			s.undisturbed("rebuild")
			s.must(unscheduled(s.View.Pod(s.Namespace, "db"), "ticket "+s.Namespace+"/rebuild"))
			s.removeTicket("rebuild")
			s.runs("db")
			s.say("the rebuild was not interrupted, also under another leader; db runs when it is done")
			s.remove("db")
			s.gone("db")
			s.ticketWith("hangs", v1alpha1.TicketRebuild, here, "data", func(t *v1alpha1.VolumeTicket) { t.Spec.TTLSeconds = new(int64(20)) })
			s.satisfied("hangs")
			s.podAt(there, "db2", "data")
			s.until("db2 waits for the rebuild that hangs", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "db2"), "ticket "+s.Namespace+"/hangs")
			})
			s.noTicket("hangs")
			s.toldOfEnd("VolumeTicket", "hangs", "TimeOver")
			s.runs("db2")
			s.say("a rebuild that hangs ends with its time, and db2 runs")
			s.uncordon(drained)
		}),
	}
}

func (s *story) undisturbed(name string) {
	t, err := s.seenTicket(name)
	s.must(err)
	s.expect(t.Status.State == v1alpha1.ReasonSatisfied && t.Yielding() == nil && t.Status.Interruptions == 0, "ticket "+name+" is not disturbed", "its status is %+v", t.Status)
}

func byHand() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "by-hand",
		Doc: "A volume is attached by hand for a look, with kubectl moorage ticket make; a pod elsewhere waits, and is told for whom. The command does not wait: the ticket stays, and ticket end ends it. " +
			"Maintenance of a volume: a ticket with detached: true keeps it from every node until it ends. Maintenance of a node: a Manual ticket there ends with the cordon.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const node, there = "worker-1", "worker-2"
			s.placed("data", node)
			a := s.moorageCommand("ticket", "make", "look", "--type", "Manual", "--claim", "data", "--node", node, "--ttl", "1h", "--wait=false")
			s.expect(a.code == 0, "the volume is attached by hand", "%d: %s%s", a.code, a.out, a.err)
			s.attachedAt("data", node)
			s.podAt(there, "db", "data")
			s.until("db waits for whoever has it by hand", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "db"), "ticket "+s.Namespace+"/look")
			})
			a = s.moorageCommand("ticket", "end", "look")
			s.expect(a.code == 0, "the ticket ends", "%d: %s%s", a.code, a.out, a.err)
			s.runs("db")
			s.say("db has the volume that somebody had attached by hand")
			s.remove("db")
			s.gone("db")
			s.ticketWith("maintenance", v1alpha1.TicketManual, "", "data", func(t *v1alpha1.VolumeTicket) { t.Spec.Wherever, t.Spec.Detached = false, true })
			s.satisfied("maintenance")
			s.podAt(there, "db2", "data")
			s.until("db2 waits for the maintenance of its volume", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "db2"), "ticket "+s.Namespace+"/maintenance")
			})
			s.expect(s.attachment("data", there) == nil && s.attachment("data", node) == nil, "the volume is at no node", "it is attached")
			s.removeTicket("maintenance")
			s.runs("db2")
			s.say("while its volume was maintained db2 waited, and runs now")
			s.remove("db2")
			s.gone("db2")
			s.ticketWith("node", v1alpha1.TicketManual, node, "data", func(t *v1alpha1.VolumeTicket) { t.Spec.OnDrain = v1alpha1.OnDrainEnd })
			s.satisfied("node")
			s.cordon(node)
			s.noTicket("node")
			s.until("the volume has left "+node, func() error {
				if s.attachment("data", node) != nil {
					return fmt.Errorf("it is attached to %s", node)
				}
				return nil
			})
			s.uncordon(node)
			s.say("the ticket at %s ended with its cordon", node)
		}),
	}
}
