// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/moorage-dev/moorage/test/internal/breaks"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func besides() []guard {
	return []guard{
		{
			Scenario: "cooperative-path", Mode: sandbox.Cooperative,
			Rule:   "a pod that opted in is told that its volumes are safe to mount, whoever attaches them",
			Breaks: []breaks.Break{"controller/volumestatus Controller.worth: if c.config.Arbiter.Cooperative { return false, 0 }"},
			Expect: []string{"is told that its volume is safe to mount"},
		},
		{
			Scenario: "cooperative-rollout", Mode: sandbox.Cooperative,
			Rule:   "I1: an exclusive volume keeps pods from other nodes while somebody living holds it",
			Breaks: shareAll,
			Expect: []string{"and the volume on"},
		},
		{
			Scenario: "cooperative-limit", Mode: sandbox.Cooperative,
			Rule:   "I2: nothing is placed past the driver's limit",
			Breaks: slotTooMany,
			Expect: []string{"pods have a node", "over-limit"},
		},
		{
			Scenario: "two-schedulers", Mode: sandbox.Cooperative,
			Rule:   "I2: a bound pod counts at once, whoever bound it",
			Breaks: []breaks.Break{"internal/ledger Ledger.podVolumesOnNode: if p.OptedOut { return nil }"},
			Expect: []string{"ours-3 is refused"},
		},
		{
			Scenario: "only-scheduling", Mode: sandbox.Cooperative,
			Rule:   "I1: an exclusive volume keeps pods from other nodes while somebody living holds it",
			Breaks: shareAll,
			Expect: []string{"the second pod goes where the volume is", "far is refused"},
		},
		{
			Scenario: "cooperative-handover", Mode: sandbox.Cooperative,
			Rule:   "I1: a volume counts where it may still be until its detach is over",
			Breaks: freeTooEarly,
			Expect: []string{"promises the volume"},
		},
		{
			Scenario: "manager-restarts", Mode: sandbox.Cooperative,
			Rule:   "a volume is attached for a ticket at a node that it has left before, as when kube-controller-manager has detached it",
			Breaks: []breaks.Break{"internal/rules attachPlan.gone: if _, left := p.volume.Left(place.Node); left && p.Cooperative { return false }"},
			Expect: []string{"is attached to worker-1", "another attachment is made"},
		},
		{
			Scenario: "bound-elsewhere", Mode: sandbox.Cooperative,
			Rule:   "Moorage takes its own attachment back where another scheduler has bound the pod elsewhere",
			Breaks: []breaks.Break{"internal/rules detachPlan.detachUnreported: return"},
			Expect: []string{"the first attachment is taken back"},
		},
	}
}
