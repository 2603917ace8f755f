// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// A victim that does not make both ends of its step is paused beforehand, so that pods certainly stop
// there. Only luck hits a step within one process.
func crashPoints() []crashPoint {
	return []crashPoint{
		{
			after: sandbox.Stamped, before: sandbox.Bound,
			victim: sandbox.MoorageScheduler, hold: paused(sandbox.MoorageScheduler),
		},
		{
			after: sandbox.Bound, before: sandbox.AttachmentCreated,
			victim: sandbox.MoorageController, hold: paused(sandbox.MoorageController),
		},
		{
			after: sandbox.AttachmentCreated, before: sandbox.PublishCalled,
			victim: sandbox.Attacher, hold: paused(sandbox.Attacher),
		},
		{
			after: sandbox.PublishCalled, before: sandbox.Published,
			victim: sandbox.Attacher, hold: attachHangs, free: attachGoesOn,
		},
		{
			after: sandbox.Published, before: sandbox.Attached,
			victim: sandbox.Attacher, hold: attachHangs, lead: publishWithoutSaying, free: attacherHears,
		},
		{
			after: sandbox.Attached, before: sandbox.Reported,
			victim: sandbox.MoorageController, hold: attachHangs, lead: attachWithoutController,
		},
		{
			after: sandbox.Reported, before: sandbox.Running,
			victim: sandbox.MoorageController,
		},
	}
}

func paused(name string) func(*crashes) {
	return func(c *crashes) { c.must(c.Cluster.Pause(name)) }
}

func attachWithoutController(c *crashes, wave []string) {
	c.until("an attach is asked for", func() error { return c.reached(wave, sandbox.PublishCalled) })
	c.must(c.Cluster.Pause(sandbox.MoorageController))
	attachGoesOn(c)
}

func publishWithoutSaying(c *crashes, wave []string) {
	c.until("an attach is asked for", func() error { return c.reached(wave, sandbox.PublishCalled) })
	c.must(c.Cluster.Cut(sandbox.Attacher))
	attachGoesOn(c)
}

func attacherHears(c *crashes) { c.must(c.Cluster.Restore(sandbox.Attacher)) }

func attachHangs(c *crashes) {
	c.mend = c.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.ControllerPublish}, Action: diskapi.Hang})
}

func attachGoesOn(c *crashes) { c.mend() }
