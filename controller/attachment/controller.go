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

// Config is what a Controller works with.
type Config struct {
	// Snapshot returns the facts. It must not call the Controller: its locks are held.
	Snapshot func() ledger.Snapshot
	Arbiter  rules.Arbiter
	Do       Doer
	Now      func() time.Time
	// Gather is the longest time that an unused volume without a waiter stays in volumesAttached after it
	// could leave, so that a node's volumes leave in one write. 0: not at all.
	Gather  time.Duration
	Metrics *report.Metrics // may be nil
	Events  *report.Events  // may be nil
}

// Validate names missing fields.
func (c Config) Validate() error {
	if c.Snapshot == nil || c.Do == nil || c.Now == nil {
		return errors.New("attachment: Snapshot, Do and Now are needed")
	}
	return nil
}

// queueName is the queue's name in logs.
const queueName = "volumes"

// Controller plans and executes for each volume. Add is safe for parallel use.
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
	patches       chan struct{}  // has one for each volume that waits for the patch of a Node
}

// New returns a Controller that is ready to Run.
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

// turn orders the volumes. Namespaces take turns. First come volumes that keep a worker of their driver
// while others wait for it: a look shows whether it is free. Then come volumes that only have to be
// brought to their waiters; otherwise volumes that move together would all arrive last.
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

// namespace is that of a volume's claim; "": it has none.
func namespace(s ledger.Snapshot, id ledger.VolumeID) string {
	v := s.Volume(id)
	if v == nil {
		return ""
	}
	return s.ClaimOf(v.PVs()).Namespace
}

// Add has a volume looked at, at once, because something about it has changed: failed steps are tried
// again as well.
func (c *Controller) Add(v ledger.VolumeID) {
	c.pauses.news(v)
	c.queue.Add(v)
}

// GoOn has a volume looked at, at once, because of what one of its own steps has
// noted or proved (ledger.Touched.Own). A step that failed keeps its pause: the
// attempt would otherwise be the reason for the next one.
func (c *Controller) GoOn(v ledger.VolumeID) { c.queue.Add(v) }

// Later has a volume looked at after the touched volumes.
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
func (c *Controller) Run(ctx context.Context, workers int) {
	c.begin(ctx, c.config.Snapshot(), c.config.Now())
	c.flights.add(workers)
	c.flying.Go(func() { c.pods.queue.Run(ctx, min(workers, maxRemovals)) })
	c.queue.Run(ctx, workers)
	c.flying.Wait()
}

// begin takes in the former leader's work: operations under way keep their workers from now on, and not
// only after a look.
func (c *Controller) begin(ctx context.Context, s ledger.Snapshot, now time.Time) {
	c.unreportedForced.begin(s)
	if c.unreportedForced.any() {
		c.unreportedForced.told(c.config.Events.ForcedDetaches(ctx))
	}
	for v := range s.Volumes() {
		c.driver.look(s, v.ID, nil, now)
	}
}

// process does what the plan for one volume says. It has no error: each step that
// fails pauses by itself.
func (c *Controller) process(ctx context.Context, id ledger.VolumeID) (time.Duration, error) {
	// Before the snapshot, which shows what came of steps that have ended by now.
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
	// First the steps to put off: a step that failed at its turn has had it, and only pauses.
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
	case len(busy) > 0: // The volume is shared no longer. The end of the remaining steps has it checked again.
		admit(0, nil)
		pause = 0
	default:
		pause = c.attemptOrPatch(ctx, id, admit(len(steps), steps))
	}
	if pause > 0 {
		again = protocol.Sooner(again, pause)
		// A step that was not begun takes no worker from others while it pauses.
		c.driver.look(c.config.Snapshot(), id, c.flights.at(id), now)
		c.callNext(id.Driver, workers)
	}
	return again, nil
}

// spread has the steps of a shared volume done without a wait, a node's steps side by side: a slow node
// holds up no other. admit returns the steps that may be done at so many nodes. If many other volumes'
// steps are under way, and none of this volume, it does one node's steps itself, and returns attempt's
// result.
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

// maxHoldDeletions is how many holds are deleted at once, beside what the workers do. All that
// wait for a list share the next one.
const maxHoldDeletions = 256

// asideFull is when a hold is looked at again that found no room among those.
const asideFull = time.Second

// deletesHold says whether the only step for a volume is to delete its hold.
func deletesHold(steps []rules.Step) bool {
	return len(steps) == 1 && steps[0].Kind == rules.DeleteHold
}

// deleteAside has a hold deleted without a worker: that takes lists of all
// PersistentVolumes and VolumeAttachments, and where many volumes are deleted at once all
// workers would wait for them. It returns when to try again where there is no room.
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

// maxPatches is how many volumes wait for patches of Nodes, or for lists of their pods, at once without a
// worker.
const maxPatches = 4096

// attemptOrPatch is attempt for a volume that is not shared. If the only step is to change a node's
// volumesAttached, or to list its pods, it takes no worker: a node's changes share its next patch, and
// its listings the next list, and as many workers as the node has volumes would wait for that.
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

// sharesRequest says whether a step waits for a request that others of its node share.
func sharesRequest(a rules.Kind) bool {
	return a == rules.Report || a == rules.Unreport || a == rules.ConfirmUnwanted
}

// attempt does steps side by side, and returns the time until the first failed one is tried again, 0
// without a failure.
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

// Clear has the terminating pods of an out-of-service node removed, so that no volume waits for them.
// It does not wait for that.
func (c *Controller) Clear(n ledger.NodeName) {
	c.pods.apart(c.config.Arbiter.Abandoned(c.config.Snapshot(), n))
}

// callNext has the volumes checked that get a worker of a driver now.
func (c *Controller) callNext(driver string, workers int) {
	for _, waiting := range c.driver.next(driver, workers) {
		c.queue.First(waiting) // its worker is idle until then
	}
}

// inParallel does something with each step, some of them at a time: none depends on
// another.
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

// tellAttached tells the pods that wait for a volume at a node that it is attached, as
// the attach/detach controller does.
func (c *Controller) tellAttached(step rules.Step) {
	s := c.config.Snapshot()
	v := s.Volume(step.Volume)
	tellUsers(s, v, v.OnNode(step.Node), func(pod *ledger.Pod, volume string) { c.config.Events.Attached(pod, volume) })
}

// tellRefused gives the pods that wait for a volume at a node an event about a refused write that attaching
// needs, as the attach/detach controller does: a write about that node, or a write that the volume needs to
// leave its holder's node.
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

// tellUsers calls tell with each pod that uses a volume at a node, and the volume's name. Where not all
// can be told, it is not always the first that are.
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
