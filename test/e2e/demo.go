// SPDX-License-Identifier: Apache-2.0

package e2e

import "github.com/moorage-dev/moorage/test/sandbox"

// Demo lists the scenes that the demo plays: scenarios, in an order that tells
// a story in a few minutes. All run on clusters of one shape, so that the stage
// is set once.
func Demo() []sandbox.Scene {
	return []sandbox.Scene{
		{
			Title: "One pod, one volume",
			Intro: "A namespace is labelled moorage.dev/enforce=true. A pod with a claim is stamped by the webhook, placed by the scheduler plugin, " +
				"granted its volume by the controller, which attaches it; a real kubelet mounts it. Then all the way back.",
			Scenario: onStage(path()), Stages: true,
		},
		{
			Title:    "A rollout (kubernetes#26567, open since 2016)",
			Intro:    "A Deployment with a ReadWriteOnce claim rolls out with maxSurge 1, and prefers to spread. The old pod stays until the new one is ready.",
			Scenario: onStage(rollout()), Upstream: true,
		},
		{
			Title:    "Twelve slots, twenty pods",
			Intro:    "Three nodes can attach four volumes each.",
			Scenario: onStage(limit()),
		},
		{
			Title:    "A pod moves",
			Intro:    "Its volume must leave the old node entirely before it is attached to the new one. Here the old node lets go late.",
			Scenario: onStage(handover()),
		},
		{
			Title:    "A pod moves, and the detach fails",
			Intro:    "A detach that failed says nothing of where the disk is. Whoever attaches it elsewhere on that ground may have it at two nodes.",
			Scenario: onStage(handoverFailing()), Upstream: true,
		},
		{
			Title:    "A pod comes back while its detach fails",
			Intro:    "The bug class that upstream fixed twice: the volume has left volumesAttached and is never put back.",
			Scenario: onStage(readd()),
		},
		{
			Title:    "A pod comes back to a full node",
			Intro:    "Its own attachment takes one of the node's slots.",
			Scenario: onStage(fullNode()), Upstream: true,
		},
		{
			Title:    "A node dies (kubernetes#65392)",
			Intro:    "Nobody may take its volume while its pod may still write. But everybody should know what is waited for, and what helps.",
			Scenario: onStage(nodeFailure()),
		},
	}
}

// onStage gives a scenario the demo's cluster.
func onStage(s sandbox.Scenario) sandbox.Scenario {
	s.Shape = failingNodes
	return s
}
