// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func beside(scenario sandbox.Scenario) sandbox.Scenario {
	scenario.Name = "cooperative-" + scenario.Name
	scenario.Doc = "Beside the stock attach/detach controller. " + scenario.Doc
	scenario.Modes = []sandbox.Mode{sandbox.Cooperative}
	return scenario
}

// managerRestarts guards that a restart of the other controller touches no attachment that a pod uses.
func managerRestarts() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "manager-restarts",
		Doc: "kube-controller-manager is killed and started again beside Moorage: it deletes the attachment that was made for a ticket, and Moorage makes it again; " +
			"a pod that runs keeps its volume; neither fights over volumesAttached.",
		Modes: []sandbox.Mode{sandbox.Cooperative},
		Shape: threeByFour,
		Takes: 30 * time.Second,
		Run: tell(func(s *story) {
			const node, other = "worker-1", "worker-2"
			s.claim("used")
			s.podAt(other, "db", "used")
			s.runs("db")
			s.placed("data", node)
			handle, used := s.handle("data"), s.handle("used")
			s.manualTicket("keep", node, "data")
			first := s.attachedAt("data", node)
			s.say("attached to %s for a ticket, before any pod is there; kube-controller-manager is killed", node)
			s.must(s.Cluster.Kill(s.ctx, sandbox.ControllerManager))
			s.must(s.Cluster.StartAgain(sandbox.ControllerManager))
			s.pokedUntilDetached(node, handle)
			s.until("another attachment is made", func() error {
				a := s.attachment("data", node)
				if a == nil || a.UID == first.UID || !a.Status.Attached {
					return errors.New("not yet")
				}
				return nil
			})
			s.say("it has deleted the attachment, and Moorage has made it again")
			s.podAt(node, "late", "data")
			s.runs("late")
			s.removeTicket("keep")
			s.remove("late")
			s.gone("late")
			s.until("its attachment is gone", func() error {
				if s.attachment("data", node) != nil {
					return errors.New("it is there")
				}
				return nil
			})
			s.never(diskapi.ControllerUnpublish, used, other)
			s.must(s.Running("db"))
			s.keepsOutOfNodeStatus()
		}),
	}
}

// boundElsewhere guards the repair after another scheduler binds the pod to another node than its ticket's.
func boundElsewhere() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "bound-elsewhere",
		Doc: "A volume is attached to one node for a ticket, and another scheduler binds the pod to another node: the attach/detach controller attaches it there, too. " +
			"Moorage says so, and takes the first attachment back.",
		Modes: []sandbox.Mode{sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const made, bound = "worker-1", "worker-2"
			s.placed("data", made)
			handle := s.handle("data")
			pod := sandbox.Pod("db", "data")
			pod.Spec.SchedulerName = "another"
			s.must(s.CreatePod(s.ctx, pod))
			s.ticketOfType("copy", v1alpha1.TicketSnapshot, made, "data")
			s.attachedAt("data", made)
			s.say("attached to %s for a snapshot's ticket; another scheduler binds db to %s", made, bound)
			s.must(s.Client.CoreV1().Pods(s.Namespace).Bind(s.ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: s.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: bound},
			}, metav1.CreateOptions{}))
			s.until("the first attachment is taken back", func() error {
				if s.attachment("data", made) != nil {
					return errors.New("it is there")
				}
				return nil
			})
			s.runs("db")
			s.held("data", bound)
			s.until("it is told that the volume was at two nodes", func() error {
				for _, e := range s.View.Events(metav1.NamespaceDefault) {
					if e.InvolvedObject.Kind == "VolumeHold" && e.Reason == "AttachedTwice" {
						return nil
					}
				}
				return errors.New("there is no such event")
			})
			s.never(diskapi.ControllerUnpublish, handle, bound)
			s.must(s.ExpectViolation(s.ctx, diskapi.TwoNodes))
			s.say("db runs on %s, and the attachment at %s is gone", bound, made)
			s.keepsOutOfNodeStatus()
		}),
	}
}

// A new attach/detach controller takes everything as mounted until it hears of the node, and a kubelet
// without news is silent for minutes.
func (s *story) pokedUntilDetached(node, handle string) {
	for range 20 {
		s.cordon(node)
		s.uncordon(node)
		err := s.EventuallyWithin(s.ctx, 5*time.Second, "the detach from "+node+" begins", func() error {
			if len(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, handle, node)) < 2 { // the first was when it was placed
				return errors.New("not yet")
			}
			return nil
		})
		if err == nil {
			return
		}
	}
	s.expect(false, "kube-controller-manager deletes what it knows no pod for", "it does not")
}

func (s *story) keepsOutOfNodeStatus() {
	for _, e := range s.everyRequest() {
		if e.User.Username == controllerUser && e.Object.Path() == "nodes/status" {
			s.expect(false, "Moorage writes no node status", "%s", e)
		}
	}
}

func (s *story) placed(claim, node string) {
	s.claim(claim)
	s.podAt(node, "first-"+claim, claim)
	s.runs("first-" + claim)
	s.remove("first-" + claim)
	s.gone("first-" + claim)
	s.until("the volume of "+claim+" is attached nowhere", func() error {
		if s.attachment(claim, node) != nil {
			return errors.New("it is attached")
		}
		return nil
	})
}

func (s *story) attachedAt(claim, node string) *storagev1.VolumeAttachment {
	var found *storagev1.VolumeAttachment
	s.until("the volume of "+claim+" is attached to "+node, func() error {
		found = s.attachment(claim, node)
		if found == nil || !found.Status.Attached {
			return errors.New("not yet")
		}
		return nil
	})
	return found
}

func (s *story) manualTicket(name, node, claim string) {
	s.ticket(&v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.VolumeTicketSpec{
			Type: v1alpha1.TicketManual, NodeName: node, TTLSeconds: new(int64(3600)),
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: claim}}},
		},
	})
}

func (s *story) ticket(t *v1alpha1.VolumeTicket) {
	t.Namespace = s.Namespace
	if _, err := s.own().VolumeTickets(s.Namespace).Create(s.ctx, t, metav1.CreateOptions{}); err != nil {
		s.must(fmt.Errorf("create ticket %s: %w", t.Name, err))
	}
}

func (s *story) removeTicket(name string) {
	s.must(s.own().VolumeTickets(s.Namespace).Delete(s.ctx, name, metav1.DeleteOptions{}))
}

func (s *story) own() client.Interface {
	c, err := client.NewForConfig(s.Cluster.RESTConfig())
	s.must(err)
	return c
}
