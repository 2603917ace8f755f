// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// nodeDeleted guards that a deleted Node proves nothing: an autoscaler deletes unreachable Nodes, and the
// machine may go on to write.
func nodeDeleted() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "node-deleted",
		Doc: "A node is cut off from the API server; its machine and its pod live. Its Node is deleted as by an autoscaler, and its pod by force. Nothing is detached, and who waits is told why. " +
			"The network is back and the kubelet is started again, which makes the Node anew in the same boot: it may have forgotten what it has mounted. Another boot shows that nothing is, and the pod that waits runs.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   failingNodes,
		Takes:   80 * time.Second,
		Timeout: 6 * time.Minute,
		Run: tell(func(s *story) {
			s.policy("patient", v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{AfterPodGone: "1h"}})
			old := s.evictable()
			from, handle, boot := old.Spec.NodeName, s.handle("data"), s.bootOf(old.Spec.NodeName)
			before := s.View.Node(from).UID
			s.say("%s, where %s runs, is cut off from the API server, and lives", from, old.Name)
			s.must(s.Cluster.Cut(from))
			replacement := s.replaced(old)
			s.must(s.Client.CoreV1().Nodes().Delete(s.ctx, from, metav1.DeleteOptions{}))
			s.must(s.forceDelete(s.ctx, old.Name))
			s.say("its Node is deleted, and %s by force", old.Name)
			s.until("the waiting pod is told that nobody knows of the machine", func() error {
				if s.View.Node(from) != nil {
					return errors.New("the Node is there")
				}
				return told(s.View.Pod(s.Namespace, replacement.Name), "NodeUnreachable", from)
			})
			s.sayTold(replacement.Name)
			s.bystanders(replacement.Spec.NodeName)
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.never(diskapi.ControllerPublish, handle, replacement.Spec.NodeName)
			s.say("two pods that came later run, and the leader is another one: nothing was taken from the machine")
			s.must(s.Cluster.Restore(from))
			s.must(s.Cluster.Kill(s.ctx, from))
			s.must(s.Cluster.StartAgain(from))
			s.nodeIs(from, true)
			s.expect(s.View.Node(from).UID != before && s.bootOf(from) == boot, "it is another Node of the same boot", "boot %s is %s", boot, s.bootOf(from))
			s.until("the waiting pod is told that the kubelet may have forgotten the volume", func() error {
				return told(s.View.Pod(s.Namespace, replacement.Name), "InUseUnknown", from, "may have forgotten that it is mounted")
			})
			s.sayTold(replacement.Name)
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.say("its kubelet has made the Node anew, in the same boot; now the machine is rebooted")
			s.must(s.Cluster.PowerOff(s.ctx, from))
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.runs(replacement.Name)
			s.goesOn(handle, from, replacement.Spec.NodeName)
			s.nodeIs(from, true)
			s.say("%s runs on %s", replacement.Name, replacement.Spec.NodeName)
			s.noPolicy("patient")
		}),
	}
}

// Reports from meanwhile count once the controller is back.
func deadTogether() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "dead-together",
		Doc: "A node is switched off, the controller is killed, and the driver fails to detach. The node gets the out-of-service taint while there is no controller. " +
			"Once there is one, and the driver works, the volume is elsewhere.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   failingNodes,
		Takes:   50 * time.Second,
		Timeout: 5 * time.Minute,
		Run: tell(func(s *story) {
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			s.say("%s, where %s runs, is switched off, the controller is killed, and the driver fails", from, old.Name)
			mend := s.failDetach(handle)
			s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageController))
			s.must(s.Cluster.PowerOff(s.ctx, from))
			s.nodeIs(from, false)
			s.taint(from, outOfService())
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.must(s.Cluster.StartAgain(sandbox.MoorageController))
			replacement := s.replaced(old)
			s.detachBegins(handle, from)
			s.never(diskapi.ControllerPublish, handle, replacement.Spec.NodeName)
			s.say("the controller is back, and the driver refuses the detach: nothing is attached elsewhere")
			mend()
			s.runs(replacement.Name)
			s.goesOn(handle, from, replacement.Spec.NodeName)
			s.forcedBy(string(v1alpha1.ForceDetachOutOfService), from)
			s.say("%s runs on %s", replacement.Name, replacement.Spec.NodeName)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.untaint(from, outOfService())
		}),
	}
}
