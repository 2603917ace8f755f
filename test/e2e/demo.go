// SPDX-License-Identifier: Apache-2.0

package e2e

import "github.com/moorage-dev/moorage/test/sandbox"

func Demo() []sandbox.Scene {
	return []sandbox.Scene{
		{
			Title: "One pod, one volume", Short: "One pod",
			Intro: "A namespace is labelled moorage.dev/enforce=true. A pod with a claim is stamped by the webhook and placed by the scheduler's plugin; " +
				"the controller attaches its volume; a real kubelet mounts it. Then all the way back.",
			Scenario: onStage(path()), Stages: true,
			Does: "runs, and its volume is detached afterwards",
		},
		{
			Title: "A rollout (kubernetes#26567, open since 2016)", Short: "A rollout",
			Intro:    "A Deployment with a ReadWriteOnce claim rolls out with maxSurge 1, and prefers to spread. The old pod stays until the new one is ready.",
			Scenario: onStage(rollout()),
			Fails:    "hangs: the volume can't follow", Does: "is done: the pod goes to its volume",
		},
		{
			Title: "Twelve slots, twenty pods", Short: "Full nodes",
			Intro:    "Three nodes can attach four volumes each.",
			Scenario: onStage(limit()),
			Does:     "12 pods run, and 8 say why they wait",
		},
		{
			Title: "A pod moves", Short: "A move",
			Intro:    "Its volume must leave the old node entirely before it is attached to the new one. Here the old node lets go late.",
			Scenario: onStage(handover()),
			Does:     "waits for the detach, then runs",
		},
		{
			Title: "A pod moves, and the detach fails", Short: "A failed detach",
			Intro:    "After a failed detach the disk may still be at the old node. A second attach may then put it at two nodes.",
			Scenario: onStage(handoverFailing()),
			Fails:    "tries to attach it a second time", Does: "waits until a detach succeeds",
		},
		{
			Title: "A pod comes back while its detach fails", Short: "A return",
			Intro:    "Upstream has mended this bug twice: the volume has left volumesAttached and is never put back.",
			Scenario: onStage(readd()),
			Does:     "runs again",
		},
		{
			Title: "A pod comes back to a full node", Short: "Its own slot",
			Intro:    "Its own attachment takes one of the node's slots.",
			Scenario: onStage(fullNode()),
			Fails:    "refuses the pod for its own slot", Does: "binds the pod at once",
		},
		{
			Title: "A node dies (kubernetes#65392)", Short: "A dead node",
			Intro:    "No pod may take its volume while its pod may still write. The waiting pod says what it waits for, and what helps.",
			Scenario: onStage(nodeFailure()),
			Does:     "says why it waits, and moves on proof",
		},
	}
}

func onStage(s sandbox.Scenario) sandbox.Scenario {
	s.Shape = failingNodes
	return s
}
