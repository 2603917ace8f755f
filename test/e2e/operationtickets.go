// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func needing(operations string) func(*sandbox.Shape) {
	return func(shape *sandbox.Shape) {
		operating(shape)
		shape.Operations.AttachFor, shape.Operations.CopyLatency, shape.Operations.ExpandLatency = operations, 4*time.Second, 2*time.Second
		shape.Operations.CopyInBackground = true
	}
}

func attachedFor(operations ...v1alpha1.VolumeOperation) v1alpha1.AttachPolicySpec {
	return v1alpha1.AttachPolicySpec{AttachFor: operations}
}

func operationSnapshot() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "operation-snapshot",
		Doc: "The driver makes snapshots only while the volume is attached, and copies in the background. One of a volume that nobody has is made, though the leader and the snapshotter are killed in the middle, and the volume is detached then. " +
			"Another one is of a volume whose pod is deleted in the middle: the volume stays where it is until the copy is complete.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: needing("snapshot"),
		Takes: time.Minute,
		Run: tell(func(s *story) {
			const here = "worker-1"
			s.policy("needs", attachedFor(v1alpha1.OperationSnapshot))
			s.placed("idle", here)
			s.snapshotOf("of-idle", "idle")
			ticket := s.operationTicket(v1alpha1.OperationSnapshot)
			s.eventOf("VolumeSnapshot", "of-idle", "OperationTicket", ticket)
			s.satisfied(ticket)
			s.newLeader()
			s.must(s.Cluster.Kill(s.ctx, sandbox.Snapshotter))
			s.must(s.Cluster.StartAgain(sandbox.Snapshotter))
			s.snapshotReady("of-idle")
			s.noTicket(ticket)
			s.leavesEveryNode("idle")
			s.say("a snapshot of a volume that nobody had is made, and the volume is detached again")

			s.claim("data")
			s.podAt(here, "db", "data")
			s.runs("db")
			first := s.attachedAt("data", here)
			s.snapshotOf("of-data", "data")
			ticket = s.operationTicket(v1alpha1.OperationSnapshot)
			s.satisfied(ticket)
			s.chosen(ticket, here)
			s.remove("db")
			s.gone("db")
			s.snapshotReady("of-data")
			// external-attacher may ask twice for one attachment; the disk service applies it once.
			kept := s.calls(diskapi.ControllerPublish, diskapi.Applied, s.handle("data"), here)
			s.expect(len(kept) == 1, "the volume of db stayed attached at "+here, "it was attached %d times, first by %s", len(kept), first.Name)
			s.leavesEveryNode("data")
			s.say("db is gone, and its volume stayed at %s until its snapshot was complete", here)
			s.noPolicy("needs")
		}),
	}
}

func operationYields() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "operation-yields",
		Doc: "A snapshot takes for ever, and a pod elsewhere wants the volume: it has it once the ticket's notice is over, which nobody cuts short. The ticket follows, and the snapshot is made where the pod is. " +
			"A clone of it is not interrupted: a pod elsewhere waits until the new claim is bound.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: needing("snapshot,clone"),
		Takes: 110 * time.Second,
		Run: tell(func(s *story) {
			const here, there, notice = "worker-1", "worker-2", 30 * time.Second
			s.policy("needs", attachedFor(v1alpha1.OperationSnapshot, v1alpha1.OperationClone))
			s.claim("data")
			s.podAt(here, "db", "data")
			s.runs("db")
			mend := s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.CreateSnapshot}, Action: diskapi.Hang})
			s.snapshotOf("of-data", "data")
			ticket := s.operationTicket(v1alpha1.OperationSnapshot)
			s.satisfied(ticket)
			s.remove("db")
			s.gone("db")
			s.podAt(there, "db2", "data")
			asked := s.yields(ticket)
			s.runs("db2")
			ended := last(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, s.handle("data"), here)).Time
			s.expect(!ended.Before(asked.Add(notice)), "the ticket kept the volume until its time was over", "it was asked at %s, and the volume was detached at %s", asked, ended)
			s.say("db2 has the volume, after the notice and not before")
			s.chosen(ticket, there)
			s.satisfied(ticket)
			mend()
			s.snapshotReady("of-data")
			s.noTicket(ticket)
			s.say("the ticket followed db2 to %s, and the snapshot was made there", there)

			s.remove("db2")
			s.gone("db2")
			s.leavesEveryNode("data") // else the clone begins while the volume still leaves db2's node
			s.cloneOf("copy", "data")
			ticket = s.operationTicket(v1alpha1.OperationClone)
			s.satisfied(ticket)
			t, err := s.seenTicket(ticket)
			s.must(err)
			at, elsewhere := t.Node(), here
			if at == here {
				elsewhere = there
			}
			s.podAt(elsewhere, "db3", "data")
			s.runs("db3")
			s.expect(s.View.Claim(s.Namespace, "copy").Status.Phase == "Bound", "the clone was bound before db3 had the volume", "it is not")
			s.noTicket(ticket)
			s.say("db3 waited at %s until the clone at %s was bound", elsewhere, at)
			s.noPolicy("needs")
		}),
	}
}

func operationExpansion() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "operation-expansion",
		Doc: "The driver expands only what is attached. A volume that nobody has is attached for it, and detached when what is left is the node's. " +
			"Another expansion does not come to its end: when its ticket is deleted, as when its time is over, a pod elsewhere, which waited for it, has the volume, the claim has an event, and when the driver is in order again the expansion is done where the pod is.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: needing("expansion"),
		Takes: 90 * time.Second,
		Run: tell(func(s *story) {
			const here = "worker-1"
			s.policy("needs", attachedFor(v1alpha1.OperationExpansion))
			s.placed("idle", here)
			s.expand("idle", "2Gi")
			ticket := s.operationTicket(v1alpha1.OperationExpansion)
			s.expandedAtStorage("idle", "2Gi")
			s.noTicket(ticket)
			s.leavesEveryNode("idle")
			s.say("a volume that nobody had is larger, and detached again")

			s.claim("data")
			s.podAt(here, "db", "data")
			s.runs("db")
			s.remove("db")
			s.gone("db")
			mend := s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.ControllerExpand}, Action: diskapi.Fail, Code: "Unavailable", Message: "the storage is busy"})
			s.expand("data", "2Gi")
			ticket = s.operationTicket(v1alpha1.OperationExpansion)
			s.satisfied(ticket)
			t, err := s.seenTicket(ticket)
			s.must(err)
			at, elsewhere := t.Node(), "worker-2"
			if at == elsewhere {
				elsewhere = here
			}
			s.podAt(elsewhere, "db2", "data")
			s.until("db2 is told who has its volume", func() error { return unscheduled(s.View.Pod(s.Namespace, "db2"), "ticket "+s.Namespace+"/"+ticket) })
			// A failure counts only after the controller saw the ticket granted. Otherwise another ticket
			// is made, and deleted, too.
			asked := len(s.expansions("data"))
			s.until("the ticket is deleted, and the claim has an event OperationHeld: OperationPaused", func() error {
				if s.Event("PersistentVolumeClaim", "data", "OperationHeld", "OperationPaused") != nil {
					return nil
				}
				t, err := s.seenTicket(ticket)
				if n := len(s.expansions("data")); err == nil && n >= asked+2 && isSatisfied(t) && t.DeletionTimestamp == nil {
					asked = n
					s.removeTicket(ticket)
				}
				return errors.New("there is no such event yet")
			})
			s.runs("db2")
			s.say("the driver does not expand: db2 waited for the ticket, and has the volume at %s", elsewhere)
			mend()
			s.expandedAtStorage("data", "2Gi")
			s.noTicket(ticket)
			s.say("the driver is in order, and the volume of db2 is larger")
			s.noPolicy("needs")
		}),
	}
}

func (s *story) expansions(claim string) []diskapi.Entry {
	return s.View.Calls(diskapi.Filter{Call: diskapi.ControllerExpand, Phase: diskapi.Arrived, Volume: s.handle(claim)})
}

func operationOffline() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "operation-offline",
		Doc: "The driver expands only what is attached nowhere, and a pod has the volume: the claim is told so. When the pod is deleted, the volume is kept off all nodes until the driver is done, though the leader is killed meanwhile and another pod wants it; " +
			"that pod runs then, and finds the file system larger.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: func(shape *sandbox.Shape) {
			operating(shape)
			shape.Operations.DetachFor, shape.Operations.ExpandLatency = "expansion", 5*time.Second
		},
		Takes: 90 * time.Second,
		Run: tell(func(s *story) {
			const here = "worker-1"
			s.policy("needs", v1alpha1.AttachPolicySpec{DetachFor: []v1alpha1.VolumeOperation{v1alpha1.OperationExpansion}})
			s.claim("data")
			s.podAt(here, "db", "data")
			s.runs("db")
			s.expand("data", "2Gi")
			ticket := s.operationTicket(v1alpha1.OperationExpansion)
			s.eventOf("PersistentVolumeClaim", "data", "OperationHeld", ticket)
			s.say("db has the volume, and the claim is told that its expansion waits for that")
			mend := s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.ControllerExpand}, Action: diskapi.Hang})
			s.remove("db")
			s.gone("db")
			s.satisfied(ticket)
			// Once the volume was in use, the resizer asks again only when no pod names the claim, not even
			// a waiting pod.
			left := last(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, s.handle("data"), here)).Seq
			s.until("the driver is asked again", func() error {
				asked := s.expansions("data")
				if len(asked) == 0 || last(asked).Seq < left {
					return errors.New("it is not")
				}
				return nil
			})
			s.newLeader()
			s.podAt(here, "db2", "data")
			s.until("db2 is told who keeps its volume", func() error { return unscheduled(s.View.Pod(s.Namespace, "db2"), "ticket "+s.Namespace+"/"+ticket) })
			before := len(s.calls(diskapi.ControllerPublish, diskapi.Applied, s.handle("data"), here))
			s.expect(before == 1, "the volume is not attached for db2", "it was attached %d times", before)
			mend()
			s.expandedAtStorage("data", "2Gi")
			s.runs("db2")
			s.noTicket(ticket)
			s.expanded("data", "2Gi", "db2")
			s.say("the volume was expanded while no node had it; db2 runs, with a larger file system")
			s.noPolicy("needs")
		}),
	}
}

func (s *story) operationTicket(operation v1alpha1.VolumeOperation) (name string) {
	s.until("there is a ticket for the "+string(operation), func() error {
		for _, o := range s.View.Tickets(s.Namespace) {
			if o.GetLabels()[v1alpha1.LabelOperation] == string(operation) && o.GetDeletionTimestamp() == nil {
				name = o.GetName()
				return nil
			}
		}
		return errors.New("there is none")
	})
	return name
}

func (s *story) eventOf(kind, name, reason, text string) {
	s.until(fmt.Sprintf("%s %s has an event %s: %s", kind, name, reason, text), func() error {
		if s.Event(kind, name, reason, text) == nil {
			return errors.New("there is no such event yet")
		}
		return nil
	})
}
