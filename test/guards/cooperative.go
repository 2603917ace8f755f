// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/moorage-dev/moorage/test/sandbox"

// besides lists the guards of the scenarios beside kube-controller-manager's attach/detach controller.
func besides() []guard {
	return []guard{
		{
			Scenario: "cooperative-path", Mode: sandbox.Cooperative,
			Rule: "a pod that opted in is told that its volumes are safe to mount, whoever attaches them",
			Edits: []edit{{
				File: "controller/volumestatus/controller.go",
				Old:  "case pod.OptedOut && c.config.Arbiter.Cooperative:",
				New:  "case c.config.Arbiter.Cooperative:",
			}},
			Expect: []string{"is told that its volume is safe to mount"},
		},
		{
			Scenario: "cooperative-rollout", Mode: sandbox.Cooperative,
			Rule: "I1: an exclusive volume keeps pods from other nodes while somebody living holds it",
			Edits: []edit{{
				File: "internal/rules/access.go",
				Old:  "return a != ledger.AccessMany && a != ledger.AccessUnset",
				New:  "return false",
			}},
			Expect: []string{"and the volume on"},
		},
		{
			Scenario: "cooperative-limit", Mode: sandbox.Cooperative,
			Rule: "I2: nothing is placed past the driver's limit",
			Edits: []edit{{
				File: "internal/rules/limit.go",
				Old:  "return reason, after > limit",
				New:  "return reason, after > limit+1",
			}},
			Expect: []string{"pods have a node", "over-limit"},
		},
		{
			Scenario: "two-schedulers", Mode: sandbox.Cooperative,
			Rule: "I2: a bound pod counts at once, whoever bound it",
			Edits: []edit{{
				File: "internal/ledger/apply_users.go",
				Old:  "if p.Node == \"\" || p.Phase == PodFinished || len(p.Volumes) == 0 {",
				New:  "if p.Node == \"\" || p.Phase == PodFinished || len(p.Volumes) == 0 || p.OptedOut {",
			}},
			Expect: []string{"ours-3 is refused"},
		},
		{
			Scenario: "only-scheduling", Mode: sandbox.Cooperative,
			Rule: "I1: an exclusive volume keeps pods from other nodes while somebody living holds it",
			Edits: []edit{{
				File: "internal/rules/access.go",
				Old:  "return a != ledger.AccessMany && a != ledger.AccessUnset",
				New:  "return false",
			}},
			Expect: []string{"the second pod goes where the volume is", "far is refused"},
		},
		{
			Scenario: "cooperative-handover", Mode: sandbox.Cooperative,
			Rule: "I1: a volume counts where it may still be until its detach is over",
			Edits: []edit{{
				File: "internal/rules/plan.go",
				Old:  "if place.HasAttachments() || place.Reported { //mutant:free-too-early\n\t\treturn true",
				New:  "if place.HasAttachments() || place.Reported {\n\t\treturn false",
			}},
			Expect: []string{"promises the volume"},
		},
		{
			Scenario: "manager-restarts", Mode: sandbox.Cooperative,
			Rule: "a volume is attached for a ticket at a node that it has left before, as when kube-controller-manager has detached it",
			Edits: []edit{{
				File: "internal/rules/planbeside.go",
				Old:  "if !p.Cooperative || !left || p.now.Sub(at) >= otherLook {",
				New:  "if !p.Cooperative || !left {",
			}},
			Expect: []string{"is attached to worker-1", "another attachment is made"},
		},
		{
			Scenario: "bound-elsewhere", Mode: sandbox.Cooperative,
			Rule: "Moorage takes its own attachment back where another scheduler has bound the pod elsewhere",
			Edits: []edit{{
				File: "internal/rules/planbeside.go",
				Old:  "nothing := va == nil && !place.ReportSent",
				New:  "nothing := true",
			}},
			Expect: []string{"the first attachment is taken back"},
		},
	}
}
