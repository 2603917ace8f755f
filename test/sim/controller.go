// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// controller is one process of moorage-controller: its queues and its
// execution are the simulator's, what it decides is the real core's.
type controller struct {
	caller
	s        *Sim
	arbiter  arbiter.Arbiter
	observer *observer
	role     role
	ready    time.Time // role waiting: until when
	epoch    int64
	taking   bool
	caughtUp map[world.Kind]bool // this term
	took     map[string]bool     // tickets by UID

	volumes *queue[ledger.VolumeID]
	grants  *queue[ledger.NodeName]
	tickets *queue[ledger.TicketID]
	ages    map[string]time.Time // tickets with a time to live, by UID

	confirmed map[string]bool // attachments by UID
	writes    map[ledger.NodeName]*batch
	lists     map[ledger.NodeName]*batch
	outlasted []pause
	audited   int // the observer's changes when they were audited last
}

// pause is the end of a wait.
type pause struct {
	until time.Time
	then  func()
}

// outlast waits until a write whose answer did not come can have no effect any
// more.
func (c *controller) outlast(then func()) {
	c.outlasted = append(c.outlasted, pause{c.s.Now().Add(c.s.config.WriteTimeout), then})
}

func newController(s *Sim, name string) *controller {
	c := &controller{s: s, caller: caller{name: name, up: true}, arbiter: arbiter.Arbiter{
		StayAttached: s.config.Stay, Cooperative: s.config.Cooperative, BeforeBind: s.config.BeforeBind,
	}}
	c.forget()
	return c
}

// forget empties the process's memory.
func (c *controller) forget() {
	c.observer = newObserver(c.s, &c.caller, c.touched)
	c.volumes = newQueue[ledger.VolumeID](c.s.Now)
	c.grants = newQueue[ledger.NodeName](c.s.Now)
	c.tickets = newQueue[ledger.TicketID](c.s.Now)
	c.took, c.confirmed, c.ages = map[string]bool{}, map[string]bool{}, map[string]time.Time{}
	c.writes, c.lists = map[ledger.NodeName]*batch{}, map[ledger.NodeName]*batch{}
	c.taking, c.caughtUp, c.outlasted = false, map[world.Kind]bool{}, nil
}

// touched hands everything that is touched to whoever decides on it, as
// package controller's wake does.
func (c *controller) touched(t ledger.Touched) {
	s := c.observer.snapshot()
	for _, v := range t.Volumes {
		c.volumes.add(v)
		c.touchedVolume(s, v)
	}
	for _, n := range t.Nodes {
		if node := s.Node(n); node != nil && len(node.Tickets) > 0 {
			c.grants.add(n)
		}
	}
	for _, id := range t.Tickets {
		c.tickets.add(id)
	}
}

// touchedVolume wakes the tickets that a volume matters to.
func (c *controller) touchedVolume(s ledger.Snapshot, v ledger.VolumeID) {
	volume := s.Volume(v)
	if volume == nil {
		return
	}
	for i := range volume.Places {
		for _, u := range volume.Places[i].Users {
			if u.Pod == "" {
				c.tickets.add(u.Ticket)
			} else if p := s.Pod(u.Pod); p != nil {
				if id := (ledger.TicketID{Namespace: p.Namespace, Name: p.UID}); s.Ticket(id) != nil {
					c.tickets.add(id)
				}
			}
		}
	}
}

// all wakes everything, as a term begins with.
func (c *controller) all() {
	s := c.observer.snapshot()
	for v := range s.Volumes() {
		c.volumes.add(v.ID)
		c.touchedVolume(s, v.ID)
	}
	for t := range s.Tickets() {
		c.tickets.add(t.ID)
	}
}

// offer implements process.
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
	c.volumes.offer(func(v ledger.VolumeID) { m.add(10, c.name, "plan", volumeArg(v)) })
	c.grants.offer(func(n ledger.NodeName) { m.add(10, c.name, "grant", string(n)) })
	c.tickets.offer(func(id ledger.TicketID) { m.add(10, c.name, "tend", id.String()) })
}

// act implements process.
func (c *controller) act(what, arg string) bool {
	if !c.awake() {
		return false
	}
	switch what {
	case "list", "watch", "ghost", "lapse":
		return c.observer.act(what, arg)
	case "notice", "acquire", "begin", "take-over":
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

// due implements process.
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

// write sends a request with a deadline inside the lease.
func (c *controller) write(op string, r world.Request, then func(world.Answer, error)) {
	c.writeBy(c.s.Now().Add(c.s.config.WriteTimeout), op, r, then)
}

// writeBy is write with a deadline that may be earlier.
func (c *controller) writeBy(deadline time.Time, op string, r world.Request, then func(world.Answer, error)) {
	now := c.s.Now()
	if end := c.s.lease.until(c.s); c.leads() && end.Before(deadline) {
		deadline = end
	}
	if !c.leads() || !now.Before(deadline) {
		then(world.Answer{}, errNoLease)
		return
	}
	c.s.net.send(&c.caller, op, deadline, r, then)
}

// plan does what the plan for one volume says: all steps side by side.
func (c *controller) plan(v ledger.VolumeID) bool {
	if !c.volumes.start(v) {
		return false
	}
	now := c.s.Now()
	plan := c.arbiter.Plan(c.observer.snapshot(), v, now)
	after := time.Duration(0)
	if !plan.Recheck.IsZero() {
		after = max(plan.Recheck.Sub(now), time.Millisecond)
	}
	left, failed := len(plan.Steps), error(nil)
	if left == 0 {
		c.volumes.done(v, after, nil)
		return true
	}
	for _, step := range plan.Steps {
		c.s.note("%s %s", c.name, stepText(step))
		c.do(step, func(err error) {
			failed = worse(failed, err)
			if left--; left == 0 {
				c.volumes.done(v, after, failed)
			}
		})
	}
	return true
}

// takeOver catches up, then writes the term's epoch into every ticket that is not
// granted, one after the other; the round after the last finds none.
func (c *controller) takeOver() {
	c.role, c.taking = taking, true
	for _, k := range []world.Kind{world.Tickets, world.Attachments} {
		if !c.caughtUp[k] {
			c.catchUp(k)
			return
		}
	}
	for _, key := range c.s.keys(c.observer, world.Tickets) {
		t, ok := c.observer.get(world.Tickets, key).(ledger.Ticket)
		if !ok || t.Phase != ledger.TicketPending || c.took[t.UID] {
			continue
		}
		r := world.Request{
			Do: world.DecideTicket, Key: key, UID: t.UID, Version: t.Version,
			Phase: t.Phase, Reason: t.Reason, Epoch: max(c.epoch, t.Epoch+1),
		}
		c.decideTicket(t, r, func(err error) {
			c.taking = false // the next round
			if err == nil {
				c.took[t.UID] = true
			}
		})
		return
	}
	c.role, c.taking = leading, false
	c.all()
}

// catchUp takes in what there is of a kind, as nothing that the leader before has
// sent can be under way any more.
func (c *controller) catchUp(k world.Kind) {
	c.write("list "+k.String(), world.Request{Do: world.ListObjects, Kind: k}, func(a world.Answer, err error) {
		c.taking = false // the next round
		if err == nil {
			c.observer.saw(a.Facts...)
			c.caughtUp[k] = true
		}
	})
}

// keys lists what an observer knows of a kind, sorted.
func (s *Sim) keys(o *observer, k world.Kind) []string {
	set := map[string]bool{}
	var list []string
	for _, from := range []map[string]ledger.Event{o.store[k], o.ahead[k]} {
		for key := range from {
			if !set[key] {
				set[key] = true
				list = append(list, key)
			}
		}
	}
	slices.Sort(list)
	return list
}
