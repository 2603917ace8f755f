// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"github.com/moorage-dev/moorage/test/sandbox"
)

func onlyScheduling() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "only-scheduling",
		Doc: "Moorage's controller is away for good, and kube-controller-manager attaches: pods with one volume go to one node, one that may not go there waits and is told why, " +
			"and runs when the volume is free. The controller comes, and finds the volume where it is.",
		Modes: []sandbox.Mode{sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const node, other = "worker-1", "worker-2"
			s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageController))
			s.claim("data")
			s.podAt(node, "db", "data")
			s.runs("db")
			s.pod("second", "data")
			second := s.runs("second")
			s.expect(second.Spec.NodeName == node, "the second pod goes where the volume is", "it is on %s", second.Spec.NodeName)
			s.podAt(other, "far", "data")
			s.waitsUnscheduled("far", node)
			s.say("without a controller db and second share %s, and far waits for it", node)
			for _, name := range []string{"db", "second"} {
				s.remove(name)
				s.gone(name)
			}
			s.runs("far")
			s.must(s.Cluster.StartAgain(sandbox.MoorageController))
			s.held("data", other)
			s.say("far runs on %s, and the controller that came finds the volume there", other)
		}),
	}
}
