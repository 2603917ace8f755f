// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// A Node made again by the same boot gives its volumes back only after moorage-node has looked there.
func nodeMadeAgain() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "node-made-again",
		Doc: "A kubelet is killed, its pod is deleted by force, its Node is deleted, and the kubelet makes it anew in the same boot: it does not count what it finds mounted. " +
			"moorage-node is refused at first, since its token is for the first Node. Its next pod finds the volume staged, as the unstage hangs, and nothing is detached. When that is done, it looks twice, and the pod that waits runs without a reboot.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: func(shape *sandbox.Shape) { withNodes(shape); shape.NamedMachines = true },
		Takes: 70 * time.Second,
		Run: tell(func(s *story) {
			const node, other = "worker-1", "worker-2"
			s.claim("data")
			s.podAt(node, "first", "data")
			s.runs("first")
			handle, boot, before := s.handle("data"), s.bootOf(node), s.View.Node(node).UID
			s.must(s.Cluster.Kill(s.ctx, node))
			s.must(s.forceDelete(s.ctx, "first"))
			s.must(s.Client.CoreV1().Nodes().Delete(s.ctx, node, metav1.DeleteOptions{}))
			s.until("the Node is gone", func() error {
				if s.View.Node(node) != nil {
					return errors.New("the Node is there")
				}
				return nil
			})
			stop := s.stopAt(node, diskapi.NodeUnstage, diskapi.Hang)
			s.must(s.Cluster.StartAgain(node))
			s.nodeIs(node, true)
			s.expect(s.View.Node(node).UID != before && s.bootOf(node) == boot, "it is another Node of the same boot", "boot %s is %s", boot, s.bootOf(node))
			s.podAt(other, "successor", "data")
			s.until("the successor is told that the kubelet may have forgotten the volume", func() error {
				return told(s.View.Pod(s.Namespace, "successor"), "InUseUnknown", node, "may have forgotten that it is mounted")
			})
			s.say("%s was made anew in the same boot, and moorage-node there has the token of the first one", node)
			s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageNode(node)))
			s.must(s.Cluster.Identify(s.ctx, node))
			s.must(s.Cluster.StartAgain(sandbox.MoorageNode(node)))
			s.toldStaged("successor", node)
			s.bystander(other)
			s.never(diskapi.ControllerUnpublish, handle, node)
			s.say("its next pod has found the volume staged; now the driver unstages it")
			stop.end()
			s.runs("successor")
			s.goesOn(handle, node, other)
			s.say("moorage-node has looked twice, and the successor runs at %s", other)
		}),
	}
}
