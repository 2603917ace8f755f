// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/work"
)

// Doer executes a step.
type Doer interface {
	Do(context.Context, arbiter.Step) error
}

// Config is what a Controller works with.
type Config struct {
	Snapshot func() ledger.Snapshot
	Arbiter  arbiter.Arbiter
	Do       Doer
	Now      func() time.Time
	Metrics  *report.Metrics // may be nil
	Events   *report.Events  // may be nil
}

// Validate says what is missing.
func (c Config) Validate() error {
	if c.Snapshot == nil || c.Do == nil || c.Now == nil {
		return errors.New("attachment: Snapshot, Do and Now are needed")
	}
	return nil
}

// Controller plans and executes for each volume. Add is safe for parallel use.
type Controller struct {
	config Config
	queue  *work.Queue[ledger.VolumeID]
	driver *limits
	watch  *stopwatch
}

// New returns a Controller that is ready to Run.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config, driver: newLimits(), watch: newStopwatch(config.Metrics)}
	c.queue = work.New("volumes", c.process)
	return c, nil
}

// Add has a volume looked at, at once.
func (c *Controller) Add(v ledger.VolumeID) { c.queue.Add(v) }

// Later has a volume looked at after those that something has touched.
func (c *Controller) Later(v ledger.VolumeID) { c.queue.Later(v) }

// Depth is how many volumes are due. Safe for parallel use.
func (c *Controller) Depth() int { return c.queue.Len() }

// crowd is how many volumes are due when none of them can be said to be late.
const crowd = 1000

// Waits says whether a volume has to wait for its turn: for a worker of its driver,
// or because very many are due. Safe for parallel use.
func (c *Controller) Waits(v ledger.VolumeID) bool { return c.Depth() > crowd || c.driver.waits(v) }

// Run works until ctx is done, and returns when the last write is answered or
// cancelled.
func (c *Controller) Run(ctx context.Context, workers int) { c.queue.Run(ctx, workers) }

// process does what the plan for one volume says.
func (c *Controller) process(ctx context.Context, id ledger.VolumeID) (time.Duration, error) {
	now := c.config.Now()
	s := c.config.Snapshot()
	c.watch.look(s.Volume(id), id, now)
	c.recount(s, id)
	plan := c.config.Arbiter.Plan(s, id, now)
	steps := c.driver.admit(id, arbiter.PolicyFor(s, id.Driver, "").Workers, plan.Steps)
	err := c.execute(ctx, steps)
	if err != nil {
		// What was not begun takes no worker from others while it backs off.
		c.recount(c.config.Snapshot(), id)
	}
	if plan.Recheck.IsZero() {
		return 0, err
	}
	return max(plan.Recheck.Sub(now), time.Millisecond), err
}

// Clear removes the terminating pods of a node that is out of service, so that
// nobody waits for them. Its error joins those of the pods that are still there.
func (c *Controller) Clear(ctx context.Context, n ledger.NodeName) error {
	return c.execute(ctx, c.config.Arbiter.Abandoned(c.config.Snapshot(), n))
}

// recount counts a volume's operations under way anew, and has those looked at
// that need not wait any more.
func (c *Controller) recount(s ledger.Snapshot, id ledger.VolumeID) {
	for _, waiting := range c.driver.look(s.Volume(id), id) {
		c.queue.Add(waiting)
	}
}

// execute does the steps of one plan side by side: none of them has to wait
// for another.
func (c *Controller) execute(ctx context.Context, steps []arbiter.Step) error {
	if len(steps) == 1 {
		return c.do(ctx, steps[0])
	}
	errs := make([]error, len(steps))
	var running sync.WaitGroup
	for i, step := range steps {
		running.Go(func() { errs[i] = c.do(ctx, step) })
	}
	running.Wait()
	return errors.Join(errs...)
}

func (c *Controller) do(ctx context.Context, step arbiter.Step) error {
	began := c.config.Now()
	err := c.config.Do.Do(ctx, step)
	c.config.Metrics.Step(step, err)
	if err != nil {
		return fmt.Errorf("at node %s: %w", step.Node, err)
	}
	c.watch.done(step, began, c.config.Now())
	if step.Forces() {
		c.config.Events.ForcedDetach(step.Node, step.Volume, step.Rule)
	}
	return nil
}
