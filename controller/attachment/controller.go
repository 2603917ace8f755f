// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
	"github.com/moorage-dev/moorage/internal/write"
)

// Doer executes a step.
type Doer interface {
	Do(context.Context, rules.Step) error
}

// Config is a Controller's configuration.
type Config struct {
	// Snapshot returns the facts. It must not call the Controller, whose locks are held.
	Snapshot func() ledger.Snapshot
	Arbiter  rules.Arbiter
	Do       Doer
	Now      func() time.Time
	// Gather is how long an unused volume without a waiter may stay in volumesAttached, so that a node's
	// volumes leave in one write. 0: none.
	Gather  time.Duration
	Metrics *report.Metrics // may be nil
	Events  *report.Events  // may be nil
}

func (c Config) Validate() error {
	if c.Snapshot == nil || c.Do == nil || c.Now == nil {
		return errors.New("attachment: Snapshot, Do and Now are needed")
	}
	return nil
}

const queueName = "volumes"

// Controller plans and executes for each volume. Add is for parallel use.
type Controller struct {
	config           Config
	queue            *work.Queue[ledger.VolumeID]
	driver           *limits
	pauses           *pauses
	watch            *stopwatch
	unreportedForced unreportedForced
	pods             *removals
	detachBatch      *detachBatch

	flights       *flights
	flying        sync.WaitGroup // the steps behind flights
	holdDeletions chan struct{}  // has one for each hold that is being deleted
	patches       chan struct{}  // one for each volume that waits for a Node's patch
}

// New returns a Controller.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config, driver: newLimits(), pauses: newPauses(), flights: newFlights(), watch: newStopwatch(config.Metrics), holdDeletions: make(chan struct{}, maxHoldDeletions), patches: make(chan struct{}, maxPatches)}
	c.queue = work.NewFair(queueName, c.turn, c.process)
	c.pods = newRemovals(config.Snapshot, c.do)
	c.detachBatch = newDetachBatch(config.Gather)
	return c, nil
}

// turn orders the volumes, with turns for namespaces. First come volumes that keep a worker while others
// wait: a look shows whether it is free. Then come volumes on the way to their waiters; otherwise volumes
// that move together would all arrive last.
func (c *Controller) turn(id ledger.VolumeID) (tenant string, as work.Rank) {
	s := c.config.Snapshot()
	switch {
	case c.driver.keepsWaiting(id, rules.PolicyFor(s, id.Driver, "").Workers):
		as = work.First
	case rules.Arrives(s, s.Volume(id)):
		as = work.Ahead
	default:
		as = work.Touched
	}
	return namespace(s, id), as
}

// namespace is the claim's; "": the volume has no claim.
func namespace(s ledger.Snapshot, id ledger.VolumeID) string {
	v := s.Volume(id)
	if v == nil {
		return ""
	}
	return s.ClaimOf(v.PVs()).Namespace
}

// Add has a changed volume looked at now; failed steps are retried too.
func (c *Controller) Add(v ledger.VolumeID) {
	c.pauses.news(v)
	c.queue.Add(v)
}

// GoOn has a volume looked at now, after its own step (ledger.Touched.Own). A failed step keeps its pause:
// otherwise its attempt would cause the next.
func (c *Controller) GoOn(v ledger.VolumeID) { c.queue.Add(v) }

// Later has a volume looked at after the touched volumes.
func (c *Controller) Later(v ledger.VolumeID) { c.queue.Later(v) }

// Depth counts the due volumes. Safe for parallel use.
func (c *Controller) Depth() int { return c.queue.Len() }

// crowd: with more due volumes, none can be called late.
const crowd = 1000

// Waits says whether a volume waits for a worker of its driver, or because very many are due. Safe for
// parallel use.
func (c *Controller) Waits(v ledger.VolumeID) bool { return c.Depth() > crowd || c.driver.waits(v) }

// Run works until ctx is done and the last write is answered or cancelled.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.begin(ctx, c.config.Snapshot(), c.config.Now())
	c.flights.add(workers)
	c.flying.Go(func() { c.pods.queue.Run(ctx, min(workers, maxRemovals)) })
	c.queue.Run(ctx, workers)
	c.flying.Wait()
}

// begin takes over the former leader's work: operations under way keep their workers at once.
func (c *Controller) begin(ctx context.Context, s ledger.Snapshot, now time.Time) {
	c.unreportedForced.begin(s)
	if c.unreportedForced.any() {
		c.unreportedForced.told(c.config.Events.ForcedDetaches(ctx))
	}
	for v := range s.Volumes() {
		c.driver.look(s, v.ID, nil, now)
	}
}

// process executes a volume's plan. It has no error: each failed step pauses by itself.
func (c *Controller) process(ctx context.Context, id ledger.VolumeID) (time.Duration, error) {
	// Before the snapshot, which shows the results of ended steps.
	busy := c.flights.at(id)
	c.pauses.decide(id)
	now := c.config.Now()
	s := c.config.Snapshot()
	c.tellForced(ctx, id, s)
	c.watch.look(s.Volume(id), id, busy, now)
	again := c.driver.look(s, id, busy, now)
	plan := c.config.Arbiter.Plan(s, id, now)
	if !plan.Recheck.IsZero() {
		again = protocol.Sooner(again, max(plan.Recheck.Sub(now), time.Millisecond))
	}
	// First the steps to put off: a step that failed at its turn only pauses.
	steps, putOff := c.detachBatch.due(id, c.pods.apart(plan.Steps), now)
	steps, pause := c.pauses.due(id, steps, now)
	again = protocol.Sooner(again, protocol.Sooner(putOff, pause))
	workers := rules.PolicyFor(s, id.Driver, "").Workers
	admit := func(nodes int, steps []rules.Step) []rules.Step {
		admitted, holders := c.driver.admit(s, id, workers, nodes, steps)
		c.callNext(id.Driver, workers)
		for _, holder := range holders {
			c.queue.MoveUp(holder)
		}
		return admitted
	}
	switch {
	case len(busy) == 0 && deletesHold(steps):
		admit(0, nil)
		pause = c.deleteAside(ctx, id, steps)
	case plan.Apart:
		pause = c.spread(ctx, id, busy, func(nodes int) []rules.Step {
			return admit(nodes, except(steps, busy))
		})
	case len(busy) > 0: // The volume is no longer shared. The end of the remaining steps checks it again.
		admit(0, nil)
		pause = 0
	default:
		pause = c.attemptOrPatch(ctx, id, admit(len(steps), steps))
	}
	if pause > 0 {
		again = protocol.Sooner(again, pause)
		// A step that was not begun keeps no worker while it pauses.
		c.driver.look(c.config.Snapshot(), id, c.flights.at(id), now)
		c.callNext(id.Driver, workers)
	}
	return again, nil
}

// spread starts a shared volume's steps without a wait, side by side for each node: a slow node holds up no
// other. admit returns the steps at so many nodes. If other volumes' steps leave no room, and none of this
// volume's is under way, spread does one node's steps itself, and returns attempt's result.
func (c *Controller) spread(ctx context.Context, id ledger.VolumeID, busy map[ledger.NodeName]bool, admit func(nodes int) []rules.Step) time.Duration {
	room := c.flights.reserve(id)
	if room == 0 && len(busy) == 0 {
		return c.attempt(ctx, admit(1))
	}
	groups := byNode(admit(room))
	c.flights.add(room - len(groups))
	for _, steps := range groups {
		node := steps[0].Node
		c.flights.begin(id, node)
		c.flying.Go(func() {
			c.attempt(ctx, steps)
			c.flights.end(id, node)
			c.queue.Add(id) // it sees the outcome, and pauses
		})
	}
	return 0
}

// maxHoldDeletions limits deletions beside the workers. Those that wait for a list share the next.
const maxHoldDeletions = 256

const asideFull = time.Second

func deletesHold(steps []rules.Step) bool {
	return len(steps) == 1 && steps[0].Kind == rules.DeleteHold
}

// deleteAside deletes a hold without a worker: it lists all PersistentVolumes and VolumeAttachments, and
// would occupy all workers. It returns when to try again if there is no room.
func (c *Controller) deleteAside(ctx context.Context, id ledger.VolumeID, steps []rules.Step) time.Duration {
	select {
	case c.holdDeletions <- struct{}{}:
	default:
		return asideFull
	}
	c.flights.begin(id, "")
	c.flying.Go(func() {
		c.attempt(ctx, steps)
		c.flights.endUnreserved(id, "")
		<-c.holdDeletions
		c.queue.Add(id) // it sees the outcome, and pauses
	})
	return 0
}

// maxPatches limits the volumes that wait without a worker for shared patches or lists.
const maxPatches = 4096

// attemptOrPatch is attempt for an unshared volume. If the only step changes a node's volumesAttached or
// lists its pods, it takes no worker: a node's volumes share the request, and would otherwise occupy a
// worker each.
func (c *Controller) attemptOrPatch(ctx context.Context, id ledger.VolumeID, steps []rules.Step) time.Duration {
	if len(steps) != 1 || !sharesRequest(steps[0].Kind) {
		return c.attempt(ctx, steps)
	}
	select {
	case c.patches <- struct{}{}:
	default:
		return c.attempt(ctx, steps)
	}
	node := steps[0].Node
	c.flights.begin(id, node)
	c.flying.Go(func() {
		c.attempt(ctx, steps)
		c.flights.endUnreserved(id, node)
		<-c.patches
		c.queue.Add(id) // it sees the outcome, and pauses
	})
	return 0
}

func sharesRequest(a rules.Kind) bool {
	return a == rules.Report || a == rules.Unreport || a == rules.ConfirmUnwanted
}

// attempt does steps side by side, and returns the time until the first retry; 0: none failed.
func (c *Controller) attempt(ctx context.Context, steps []rules.Step) time.Duration {
	again := make([]time.Duration, len(steps))
	inParallel(steps, func(i int, step rules.Step) {
		c.pauses.begin(step)
		err := c.do(ctx, step)
		pause := c.pauses.end(step, err, c.config.Now())
		if err != nil && ctx.Err() == nil {
			work.Log(ctx, queueName, step.Volume, err, pause)
			again[i] = pause
		}
	})
	first := time.Duration(0)
	for _, pause := range again {
		first = protocol.Sooner(first, pause)
	}
	return first
}

// Clear removes an out-of-service node's terminating pods, which volumes would wait for. It does not wait.
func (c *Controller) Clear(n ledger.NodeName) {
	c.pods.apart(c.config.Arbiter.Abandoned(c.config.Snapshot(), n))
}

func (c *Controller) callNext(driver string, workers int) {
	for _, waiting := range c.driver.next(driver, workers) {
		c.queue.First(waiting) // its worker is idle meanwhile
	}
}

// None of the steps depends on another.
func inParallel(steps []rules.Step, do func(i int, step rules.Step)) {
	if len(steps) == 1 {
		do(0, steps[0])
		return
	}
	var running sync.WaitGroup
	turns := make(chan struct{}, maxAbreast)
	for i, step := range steps {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			do(i, step)
		})
	}
	running.Wait()
}

func (c *Controller) do(ctx context.Context, step rules.Step) error {
	began := c.config.Now()
	var taken ledger.Fence
	if step.Forces() {
		taken = fenceOf(c.config.Snapshot(), step)
	}
	err := c.config.Do.Do(ctx, step)
	c.config.Metrics.Step(step, err)
	if step.Forces() {
		c.forced(ctx, step.Volume, taken, err)
	}
	if err != nil {
		c.tellRefused(step, err)
		return fmt.Errorf("at node %s: %w", step.Node, err)
	}
	if c.watch.done(step, began, c.config.Now()) {
		c.tellAttached(step)
	}
	return nil
}

func (c *Controller) tellAttached(step rules.Step) {
	s := c.config.Snapshot()
	v := s.Volume(step.Volume)
	tellUsers(s, v, v.OnNode(step.Node), func(pod *ledger.Pod, volume string) { c.config.Events.Attached(pod, volume) })
}

// tellRefused gives the waiting pods an event about a refused write, as the attach/detach controller does:
// a write at that node, or to leave the holder's node.
func (c *Controller) tellRefused(step rules.Step, err error) {
	s := c.config.Snapshot()
	v, why := s.Volume(step.Volume), write.Refusal(err)
	if v == nil || why == "" {
		return
	}
	leaves := false
	switch step.Kind {
	case rules.WriteHold, rules.CreateAttachment, rules.Report, rules.MarkWanted, rules.RetryAttach:
	case rules.Unreport, rules.DeleteAttachment:
		leaves = true
	default:
		return
	}
	if leaves && v.Record().Node != step.Node {
		return
	}
	for i := range v.OnNodes {
		if place := &v.OnNodes[i]; !place.Reported && leaves == (place.Node != step.Node) {
			tellUsers(s, v, place, func(pod *ledger.Pod, volume string) { c.config.Events.AttachRefused(pod, volume, place.Node, why) })
		}
	}
}

// tellUsers calls tell with the pods that use a volume at a node. If there are too many, it is not always
// the first that are told.
func tellUsers(s ledger.Snapshot, v *ledger.Volume, place *ledger.VolumeOnNode, tell func(pod *ledger.Pod, volume string)) {
	if place == nil {
		return
	}
	name := v.ID.String()
	if pvs := v.PVs(); len(pvs) > 0 {
		name = pvs[0]
	}
	for _, i := range rand.Perm(len(place.Users)) {
		if pod := s.Pod(place.Users[i].Pod); pod != nil {
			tell(pod, name)
		}
	}
}
