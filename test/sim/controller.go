// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// controller is one moorage-controller: its queues and execution are simulated, its decisions are the real
// core's.
type controller struct {
	caller
	s        *Sim
	arbiter  rules.Arbiter
	observer *observer
	role     role
	ready    time.Time // role waiting: the end of the wait
	taking   bool

	volumes *queue[ledger.VolumeID]
	grants  *queue[ledger.NodeName]
	tickets *queue[ledger.TicketID]
	pauses  *protocol.Pauses
	refused protocol.TicketPauses
	ages    map[string]time.Time // tickets with a time to live, by UID
	decided map[string]decision  // by tickets' UIDs: the last decision

	memory    *protocol.Memory
	tried     map[string]bool // in the take-over, tickets by UID
	writes    map[ledger.NodeName]*batch
	lists     map[ledger.NodeName]*batch
	outlasted []pause
	looked    int64 // when the followed answer's read of a Node was served; 0: none
	audited   int   // the observer's changes at the last audit
}

// at is the world's version at the decision; seen is the last version of the pods that the process had
// seen.
type decision struct{ at, seen int64 }

type pause struct {
	until time.Time
	then  func()
}

func newController(s *Sim, name string) *controller {
	c := &controller{s: s, caller: caller{name: name, up: true}, arbiter: rules.Arbiter{
		StayAttached: s.config.Stay, Cooperative: s.config.Cooperative, RequireNodeReport: s.config.Spoken,
	}}
	c.forget()
	return c
}

func (c *controller) forget() {
	c.observer = newObserver(c.s, &c.caller, ledger.New(), c.touched)
	c.volumes = newQueue(c.s.Now, volumeArg)
	c.grants = newQueue(c.s.Now, func(n ledger.NodeName) string { return string(n) })
	c.tickets = newQueue(c.s.Now, ledger.TicketID.String)
	c.pauses, c.refused = protocol.NewPauses(whole), protocol.TicketPauses{}
	c.ages, c.decided, c.tried = map[string]time.Time{}, map[string]decision{}, map[string]bool{}
	c.writes, c.lists = map[ledger.NodeName]*batch{}, map[ledger.NodeName]*batch{}
	c.taking, c.outlasted = false, nil
	c.memory = &protocol.Memory{Outlast: c.s.config.WriteTimeout}
}

// A change by this process's own step ends no pause.
func (c *controller) touched(t ledger.Touched) {
	look := protocol.Wake(t, c.observer.snapshot())
	for _, v := range look.Volumes {
		if !t.Own {
			c.pauses.News(v)
		}
		c.volumes.add(v)
	}
	for _, n := range look.Nodes {
		c.grants.add(n)
	}
	for _, id := range look.Tickets {
		c.tickets.add(id)
	}
}

func (c *controller) all() {
	s := c.observer.snapshot()
	for v := range s.Volumes() {
		c.volumes.add(v.ID)
	}
	for t := range s.Tickets() {
		c.tickets.add(t.ID)
	}
}

func (c *controller) offer(m *menu) {
	if !c.awake() {
		return
	}
	c.observer.offer(m)
	c.offerLease(m)
	if len(c.outlasted) > 0 && !c.s.Now().Before(c.outlasted[0].until) {
		m.add(10, c.name, "wake", "")
	}
	if c.role != leading {
		return
	}
	c.volumes.offer(m, 10, c.name, "plan")
	c.grants.offer(m, 10, c.name, "grant")
	c.tickets.offer(m, 10, c.name, "tend")
}

func (c *controller) act(what, arg string) bool {
	if !c.awake() {
		return false
	}
	if c.observer.does(what) {
		return c.observer.act(what, arg)
	}
	switch what {
	case "notice", "acquire", "begin", "take-over", "compare":
		return c.actLease(what)
	case "wake":
		return c.wake()
	}
	if c.role != leading {
		return false
	}
	switch what {
	case "plan":
		return c.plan(volumeOf(arg))
	case "grant":
		return c.grantAt(ledger.NodeName(arg))
	case "tend":
		return c.tend(world.TicketKey(arg))
	}
	return false
}

func (c *controller) wake() bool {
	if len(c.outlasted) == 0 || c.s.Now().Before(c.outlasted[0].until) {
		return false
	}
	then := c.outlasted[0].then
	c.outlasted = c.outlasted[1:]
	then()
	return true
}

func (c *controller) due() time.Time {
	if !c.awake() {
		return time.Time{}
	}
	t := c.observer.due()
	if c.role == waiting {
		t = earlier(t, c.ready)
	}
	if l := &c.s.lease; c.role == standby && !c.leads() && l.holder != nil && !l.frozen.IsZero() {
		t = earlier(t, l.until(c.s))
	}
	if len(c.outlasted) > 0 {
		t = earlier(t, c.outlasted[0].until)
	}
	if c.role != leading {
		return t
	}
	return earlier(earlier(t, c.volumes.next()), earlier(c.grants.next(), c.tickets.next()))
}

func (c *controller) plan(v ledger.VolumeID) bool {
	if !c.volumes.start(v) {
		return false
	}
	c.pauses.Decide(v)
	now := c.s.Now()
	plan := c.arbiter.Plan(world.WithoutSentGrants(c.observer.ledger, now), v, now)
	steps, after := c.pauses.Due(v, plan.Steps, now)
	if !plan.Recheck.IsZero() {
		after = protocol.Sooner(after, max(plan.Recheck.Sub(now), time.Millisecond))
	}
	left := len(steps)
	if left == 0 {
		c.volumes.done(v, after, protocol.Finished)
		return true
	}
	for _, step := range steps {
		c.s.note("%s %s", c.name, stepText(step))
		c.pauses.Begin(step)
		c.do(protocol.Do(step), func(end protocol.End) {
			after = protocol.Sooner(after, c.pauses.End(step, end, c.s.Now()))
			if left--; left == 0 {
				c.volumes.done(v, after, protocol.Finished)
			}
		})
	}
	return true
}

// takeOver runs protocol's list, then tries to take over each ticket in doubt once.
func (c *controller) takeOver() {
	c.role, c.taking = taking, true
	tasks := c.memory.TakeOver(c.observer.snapshot())
	for len(tasks) > 0 && tasks[0].TookOver {
		c.do(tasks[0], func(protocol.End) {})
		for _, e := range protocol.Doubts(c.observer.snapshot()) {
			c.observer.apply(e)
		}
		tasks = c.memory.TakeOver(c.observer.snapshot())
	}
	if len(tasks) == 0 {
		tasks = c.doubted()
	}
	if len(tasks) > 0 {
		c.do(tasks[0], func(protocol.End) { c.taking = false }) // the next round
		return
	}
	c.role, c.taking = leading, false
	c.all()
}

func (c *controller) doubted() []protocol.Task {
	for _, key := range c.s.keys(c.observer, world.Tickets) {
		if t := c.observer.snapshot().Ticket(world.TicketKey(key)); t != nil && t.InDoubt && !c.tried[t.UID] {
			c.tried[t.UID] = true
			return []protocol.Task{protocol.Renew(t)}
		}
	}
	return nil
}

func (s *Sim) keys(o *observer, k world.Kind) []string {
	list := make([]string, 0, len(o.store[k])+len(o.ahead[k]))
	for key := range o.store[k] {
		list = append(list, key)
	}
	for key := range o.ahead[k] {
		list = append(list, key)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
