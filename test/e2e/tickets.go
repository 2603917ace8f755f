// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func tickets() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "tickets",
		Doc: "A ticket of a user keeps a volume at a node, and a pod elsewhere waits for it and is told; one of a snapshot gives way to a pod; " +
			"with detachDelay a pod that comes back finds its volume there, and one elsewhere gets it at once.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			s.placed("data", here)
			handle := s.handle("data")
			s.manualTicket("keep", here, "data")
			s.attachedAt("data", here)
			s.satisfied("keep")
			s.podAt(there, "db", "data")
			s.until("the pod is told that the ticket has its volume", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "db"), "ticket "+s.Namespace+"/keep")
			})
			s.say("a user's ticket keeps the volume at %s; db waits, and is told", here)
			s.removeTicket("keep")
			s.runs("db")
			s.remove("db")
			s.gone("db")
			s.ticketOfType("backup", v1alpha1.TicketSnapshot, here, "data")
			s.attachedAt("data", here)
			s.satisfied("backup")
			s.podAt(there, "db2", "data")
			asked := s.yields("backup")
			s.until("db2 is told that the ticket has its volume", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "db2"), "ticket "+s.Namespace+"/backup")
			})
			detached := last(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, handle, here))
			s.say("a snapshot's ticket is asked to let go for db2, and nothing is detached from it")
			s.letGo("backup", asked)
			s.runs("db2")
			s.expect(last(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, handle, here)).Seq > detached.Seq, "the volume was detached once the ticket had let go", "the last detach was entry %d", detached.Seq)
			s.until("the snapshot's ticket is told", func() error { return s.ticketTells("backup", "Outranked") })
			s.say("a snapshot's ticket gave way to db2")
			s.removeTicket("backup")
			s.policy("delay", v1alpha1.AttachPolicySpec{DetachDelay: &metav1.Duration{Duration: time.Hour}})
			first := s.attachedAt("data", there)
			s.remove("db2")
			s.gone("db2")
			s.bystander(there)
			s.podAt(there, "db3", "data")
			s.runs("db3")
			kept := s.attachment("data", there)
			s.expect(kept != nil && kept.UID == first.UID, "the volume was kept for the pod that comes back", "its attachment is %v", kept)
			s.remove("db3")
			s.gone("db3")
			s.podAt(here, "db4", "data")
			s.runs("db4")
			s.detachedBefore(last(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, here)), there)
			s.say("kept for db3, which came back; given up at once for db4, elsewhere")
			s.noPolicy("delay")
		}),
	}
}

func ticketWherever() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "ticket-wherever",
		Doc: "A backup's ticket leaves its node to Moorage: it has the volume at the node of the pod that uses it, gives way when the pod moves, " +
			"and has it again where the pod is then. When nobody has the volume any more, another such ticket has it at a node that Moorage chooses.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			s.placed("data", here)
			s.podAt(here, "db", "data")
			s.runs("db")
			s.ticketOfType("backup", v1alpha1.TicketBackup, "", "data")
			s.satisfied("backup")
			s.chosen("backup", here)
			s.remove("db")
			s.gone("db")
			s.podAt(there, "db2", "data")
			s.letGo("backup", s.yields("backup"))
			s.runs("db2")
			s.chosen("backup", there)
			s.satisfied("backup")
			s.say("the ticket was at %s with db, and is at %s with db2", here, there)
			s.removeTicket("backup")
			s.remove("db2")
			s.gone("db2")
			s.until("the volume is at no node", func() error {
				for _, node := range []string{here, there} {
					if s.attachment("data", node) != nil {
						return fmt.Errorf("it is at %s", node)
					}
				}
				return nil
			})
			s.ticketOfType("again", v1alpha1.TicketBackup, "", "data")
			s.satisfied("again")
			t, err := s.seenTicket("again")
			s.must(err)
			s.expect(s.attachment("data", t.Node()) != nil, "the volume is attached where the ticket's status says", "it is not at %s", t.Node())
			s.say("nobody had the volume: a ticket has it at %s", t.Node())
			s.removeTicket("again")
		}),
	}
}

func (s *story) chosen(name, node string) {
	s.untilTicket(name, "is at "+node, func(t *v1alpha1.VolumeTicket) bool { return t.Node() == node })
}

func (s *story) yields(name string) metav1.Time {
	t := s.untilTicket(name, "is asked to let go", func(t *v1alpha1.VolumeTicket) bool {
		return t.Yielding() != nil && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TicketSatisfied)
	})
	return t.Yielding().LastTransitionTime
}

func (s *story) untilTicket(name, what string, is func(*v1alpha1.VolumeTicket) bool) (seen *v1alpha1.VolumeTicket) {
	s.until("ticket "+name+" "+what, func() (err error) {
		if seen, err = s.seenTicket(name); err == nil && !is(seen) {
			err = fmt.Errorf("its conditions are %+v", seen.Status.Conditions)
		}
		return err
	})
	return seen
}

func (s *story) letGo(name string, asked metav1.Time) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationLetsGo, asked.UTC().Format(time.RFC3339))
	_, err := s.own().VolumeTickets(s.Namespace).Patch(s.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}

func (s *story) ticketOfType(name string, kind v1alpha1.TicketType, node, claim string) {
	s.ticket(&v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.VolumeTicketSpec{
			Type: kind, NodeName: node, Wherever: node == "", TTLSeconds: new(int64(3600)),
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: claim}}},
		},
	})
}

func (s *story) seenTicket(name string) (*v1alpha1.VolumeTicket, error) {
	for _, o := range s.View.Tickets(s.Namespace) {
		if o.GetName() != name {
			continue
		}
		var t v1alpha1.VolumeTicket
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &t); err != nil {
			return nil, fmt.Errorf("ticket %s: %w", name, err)
		}
		return &t, nil
	}
	return nil, fmt.Errorf("there is no ticket %s", name)
}

func (s *story) satisfied(name string) {
	s.untilTicket(name, "is satisfied", isSatisfied)
}

func isSatisfied(t *v1alpha1.VolumeTicket) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TicketSatisfied)
}

func (s *story) ticketTells(name, reason string) error {
	t, err := s.seenTicket(name)
	if err != nil {
		return err
	}
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted)
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason != reason {
		return fmt.Errorf("it says %+v", c)
	}
	return nil
}

func (s *story) ticketNode(name string) string {
	t, err := s.seenTicket(name)
	s.must(err)
	return t.Node()
}
