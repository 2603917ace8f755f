// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// A machine that reboots before it counts as lost keeps the volumes that its pods still use.
func rebootInGrace() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "reboot-in-grace",
		Doc: "A machine is switched off, and on again before its node is called not ready; the leader is killed meanwhile. Its StatefulSet's pod goes on with its volume. " +
			"Of a pod that was deleted by force meanwhile nothing moves before the machine has booted; then its successor runs elsewhere. Nothing is left in the ledger.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   unhurriedNodes,
		Takes:   40 * time.Second,
		Timeout: 5 * time.Minute,
		Run: tell(func(s *story) {
			s.statefulSet("db")
			db := s.runs("db-0")
			stays := s.leftAt(db.Name, dataOf(db.Name))
			from := stays.node
			to := s.otherNode(from)
			s.claim("moves")
			s.podAt(from, "first", "moves")
			s.runs("first")
			moves, boot := s.handle("moves"), s.bootOf(from)
			transitions := s.held(stays.claim, from)

			s.say("the machine of %s, where db-0 and first run, is switched off; first is deleted by force, and the leader is killed", from)
			s.must(s.Cluster.PowerOff(s.ctx, from))
			s.must(s.forceDelete(s.ctx, "first"))
			s.podAt(to, "second", "moves")
			s.bystanders(to)
			s.never(diskapi.ControllerUnpublish, moves, from)
			s.unmoved([]left{stays})
			s.expect(sandbox.IsReady(s.View.Node(from)), from+" is still called Ready", "it is not")
			s.say("two pods that came later run, and %s is still called Ready: nothing was taken from it", from)

			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.until(from+" names another boot", func() error {
				if s.bootOf(from) == boot {
					return errors.New("not yet")
				}
				return nil
			})
			s.runs("second")
			s.goesOn(moves, from, to)
			s.begins(stays.handle, from, 2)
			s.nodeIs(from, true)
			s.runs("db-0")
			s.unmoved([]left{stays})
			s.expect(s.held(stays.claim, from) == transitions, "its volume has never changed its node", "transitions were %d", transitions)
			s.say("%s has booted: db-0 goes on there, and second runs on %s", from, to)
			s.nothingLeft(from, stays.claim, "moves")

			s.cordon(from)
			s.remove("db-0")
			next := s.boundAgain(db.Name, db).Spec.NodeName
			s.runs(db.Name)
			s.goesOn(stays.handle, from, next)
			s.uncordon(from)
			s.say("db-0 is deleted, and runs on %s", next)
		}),
	}
}

func unhurriedNodes(shape *sandbox.Shape) {
	threeByFour(shape)
	shape.NamedMachines, shape.NodeMonitorGracePeriod = true, 5*time.Minute
}

func (s *story) begins(handle, node string, times int) {
	s.until(fmt.Sprintf("a pod at %s begins for the %dth time to write", node, times), func() error {
		if n := len(s.calls(diskapi.WriteBegan, diskapi.Noted, handle, node)); n < times {
			return fmt.Errorf("so far %d times", n)
		}
		return nil
	})
}

func (s *story) nothingLeft(node string, claims ...string) {
	s.until(node+" has no taint", func() error {
		if taints := s.View.Node(node).Spec.Taints; len(taints) > 0 {
			return fmt.Errorf("it has %v", taints)
		}
		return nil
	})
	for _, claim := range claims {
		s.until("no VolumeHold of "+claim+" lists a fenced node", func() error {
			if hold, err := s.hold(claim); err == nil && len(hold.Status.Fenced) > 0 {
				return fmt.Errorf("it lists %v", hold.Status.Fenced)
			}
			return nil
		})
	}
	for _, e := range s.View.Events(metav1.NamespaceDefault) {
		s.expect(e.InvolvedObject.Name != node || e.Reason != "ForcedDetach", "nothing was detached from "+node+" by force", "%s", e.Message)
	}
}
