// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// nameReused guards that evidence is about a machine, not a name.
func nameReused() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "name-reused",
		Doc: "A node is cut off, its machine and its pod live. Its Node is deleted, its pod by force, and another machine registers by its name. The volume stays where it is, also under another leader: " +
			"neither a pod at the other machine gets it, nor one at another node. When the first machine has the name again, with another boot, both run one after the other.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   func(shape *sandbox.Shape) { failingNodes(shape); shape.NamedMachines = true },
		Takes:   55 * time.Second,
		Timeout: 6 * time.Minute,
		Run: tell(func(s *story) {
			s.policy("patient", v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{AfterPodGone: "1h"}})
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			second := sandbox.SecondMachine(from)
			s.say("%s, where %s runs, is cut off from the API server, and lives; its Node is deleted", from, old.Name)
			s.must(s.Cluster.Cut(from))
			replacement := s.replaced(old)
			to := replacement.Spec.NodeName
			s.must(s.Client.CoreV1().Nodes().Delete(s.ctx, from, metav1.DeleteOptions{}))
			s.must(s.forceDelete(s.ctx, old.Name))
			s.nodeGone(from)

			s.must(s.Cluster.Replace(from))
			s.until("another machine has the name "+from, func() error { return s.isMachine(from, "machine-of-"+second) })
			s.nodeIs(from, true)
			s.bystander(from)
			s.podAt(from, "twin", "data")
			s.newLeader()
			s.bystanderNamed("later", to)
			s.movesNowhere(handle, from, second, to)
			s.until("the waiting pod is told that nobody could detach the volume from the first machine", func() error {
				return told(s.View.Pod(s.Namespace, replacement.Name), "NodeReplaced", from, diskapi.NodeID(from))
			})
			s.sayTold(replacement.Name)
			s.expect(slices.Contains(s.stagedAt(handle), diskapi.NodeID(from)), "the first machine has the volume mounted", "it is staged at %v", s.stagedAt(handle))
			s.say("a pod runs on the machine that has the name %s now, and one that came later elsewhere: neither got the volume", from)

			s.remove("twin")
			s.gone("twin")
			s.remove("bystander")
			s.leavesNode("data-of-bystander", from)
			s.must(s.Cluster.Withdraw(s.ctx, from))
			s.must(s.Client.CoreV1().Nodes().Delete(s.ctx, from, metav1.DeleteOptions{}))
			s.must(s.Cluster.PowerOff(s.ctx, from))
			s.must(s.Cluster.Restore(from))
			s.nodeGone(from)
			s.movesNowhere(handle, from, second, to)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.runs(replacement.Name)
			s.goesOn(handle, from, to)
			s.nodeIs(from, true)
			s.say("the second machine is off, and the first one has booted: %s runs on %s", replacement.Name, to)
			s.noPolicy("patient")
		}),
	}
}

func (s *story) movesNowhere(handle, from, second, to string) {
	s.never(diskapi.ControllerUnpublish, handle, from)
	s.never(diskapi.ControllerUnpublish, handle, second)
	s.never(diskapi.ControllerPublish, handle, second)
	s.never(diskapi.ControllerPublish, handle, to)
}

func (s *story) nodeGone(name string) {
	s.until("Node "+name+" is gone", func() error {
		if s.View.Node(name) != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

func (s *story) isMachine(node, machine string) error {
	n := s.View.Node(node)
	if n == nil {
		return errors.New("there is no such Node")
	}
	if is := n.Status.NodeInfo.SystemUUID; is != machine {
		return fmt.Errorf("it names %s", is)
	}
	return nil
}

func (s *story) leavesNode(claim, node string) {
	s.until("the volume of "+claim+" has left "+node, func() error {
		if s.attachment(claim, node) != nil {
			return errors.New("its VolumeAttachment is there")
		}
		return nil
	})
}
