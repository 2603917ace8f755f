// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// A drain ends and moves the tickets that ask for it, and waits for the others.
func ticketDrain() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "ticket-drain",
		Doc: "A node with three tickets and no pod is drained: the one with onDrain: End ends, and its owner has the event; the one with Move lets go of its volume and has it at another node; " +
			"drain-plan names the third, and the drain ends with it.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const node = "worker-1"
			for _, claim := range []string{"ends", "moves", "stays"} {
				s.placed(claim, node)
			}
			owner := s.work("work")
			s.ticketWith("ends", v1alpha1.TicketBackup, node, "ends", func(t *v1alpha1.VolumeTicket) {
				t.OwnerReferences, t.Spec.TTLSeconds, t.Spec.OnDrain = owner, nil, v1alpha1.OnDrainEnd
			})
			s.cordon("worker-2") // the ticket that chooses is then put at the node of the drain, or at the third
			s.cordon("worker-3")
			s.ticketWith("moves", v1alpha1.TicketBackup, "", "moves", func(t *v1alpha1.VolumeTicket) { t.Spec.OnDrain = v1alpha1.OnDrainMove })
			s.ticketOfType("stays", v1alpha1.TicketManual, node, "stays")
			for _, name := range []string{"ends", "moves", "stays"} {
				s.satisfied(name)
			}
			s.chosen("moves", node)
			s.uncordon("worker-3")
			plan := s.moorageCommand("drain-plan", node)
			text := strings.Join(strings.Fields(plan.out), " ")
			s.expect(plan.code == 2 && strings.Contains(text, "1 VolumeTicket there stays until somebody ends it: "+s.Namespace+"/stays. 2 VolumeTickets leave with the cordon: "),
				"drain-plan says which tickets leave, and which one stays", "%d: %s%s", plan.code, plan.out, plan.err)
			s.say("%s", plan.out)
			ended := make(chan answer, 1)
			go func() { ended <- s.moorageCommand("drain", node, "--ignore-daemonsets", "--timeout", "3m") }()
			s.noTicket("ends")
			s.toldOfEnd("ConfigMap", "work", "NodeCordoned")
			s.toldOfEnd("VolumeTicket", "ends", "NodeCordoned")
			s.say("the ticket with onDrain: End has ended, and its owner has the event")
			s.letGo("moves", s.yields("moves"))
			s.chosen("moves", "worker-3")
			s.satisfied("moves")
			s.attachedAt("moves", "worker-3")
			s.say("the one with onDrain: Move has its volume at worker-3")
			kept := s.attachment("stays", node)
			s.expect(kept != nil && kept.DeletionTimestamp == nil, "the third keeps its volume", "its attachment is %v", kept)
			select {
			case a := <-ended:
				s.expect(false, "the drain waits for the third", "it ended with %d: %s%s", a.code, a.out, a.err)
			default:
			}
			s.removeTicket("stays")
			a := <-ended
			s.expect(a.code == 0, "the drain ends with 0", "%d: %s%s", a.code, a.out, a.err)
			s.say("%s", a.out)
			s.removeTicket("moves")
			s.uncordon(node)
			s.uncordon("worker-2")
		}),
	}
}

func ticketOrphans() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "ticket-orphans",
		Doc: "Whoever made a ticket is gone, as in Longhorn's reports: a client that dies between attach and detach (longhorn#13633: no owner, no time, nobody reaps it), " +
			"a snapshot that is deleted and leaves its ticket (longhorn#13049), a backup that fails and leaves its own (longhorn#6652). " +
			"A ticket without a time and an owner may be a backup tool's copy: it is taken, and lasts an hour. A ticket with a time ends by it, a ticket with an owner ends with the owner, and the pods that waited run.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			for _, claim := range []string{"attached", "snapped"} {
				s.placed(claim, here)
			}
			s.ticket(orphan(here))
			s.satisfied("orphan")
			s.must(s.own().VolumeTickets(s.Namespace).Delete(s.ctx, "orphan", metav1.DeleteOptions{}))
			s.noTicket("orphan")
			s.ticketWith("client", v1alpha1.TicketManual, here, "attached", func(t *v1alpha1.VolumeTicket) { t.Spec.TTLSeconds = new(int64(20)) })
			s.ticketWith("snapshot", v1alpha1.TicketEviction, here, "snapped", func(t *v1alpha1.VolumeTicket) {
				t.OwnerReferences, t.Spec.TTLSeconds = s.work("snapshot"), nil
			})
			s.satisfied("client")
			s.satisfied("snapshot")
			s.podAt(there, "waits-client", "attached")
			s.podAt(there, "waits-snapshot", "snapped")
			s.until("who waits for the snapshot's ticket is told", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "waits-snapshot"), "ticket "+s.Namespace+"/snapshot")
			})
			s.must(s.Client.CoreV1().ConfigMaps(s.Namespace).Delete(s.ctx, "snapshot", metav1.DeleteOptions{}))
			s.noTicket("snapshot")
			s.runs("waits-snapshot")
			s.say("the owner of one ticket is gone, and with it the ticket")
			s.noTicket("client")
			s.toldOfEnd("VolumeTicket", "client", "TimeOver")
			s.runs("waits-client")
			s.say("the time of the other one is over")
		}),
	}
}

func orphan(node string) *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Name: "orphan"},
		Spec: v1alpha1.VolumeTicketSpec{
			Type: v1alpha1.TicketManual, NodeName: node, Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "attached"}}},
		},
	}
}

func (s *story) work(name string) []metav1.OwnerReference {
	object, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Create(s.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	s.must(err)
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: object.UID}}
}

func (s *story) ticketWith(name string, kind v1alpha1.TicketType, node, claim string, change func(*v1alpha1.VolumeTicket)) {
	t := &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.VolumeTicketSpec{
			Type: kind, NodeName: node, Wherever: node == "", TTLSeconds: new(int64(3600)),
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: claim}}},
		},
	}
	change(t)
	s.ticket(t)
}

func (s *story) noTicket(name string) {
	s.until("ticket "+name+" has ended", func() error {
		if t, err := s.seenTicket(name); err == nil {
			return fmt.Errorf("it is there: %+v", t.Status)
		}
		return nil
	})
}

func (s *story) toldOfEnd(kind, name, cause string) {
	s.until(kind+" "+name+" has the event that a ticket has ended: "+cause, func() error {
		for _, e := range s.View.Events(s.Namespace) {
			if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == "TicketEnded" && strings.Contains(e.Message, cause) {
				return nil
			}
		}
		return errors.New("there is no such event")
	})
}
