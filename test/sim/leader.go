// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type lease struct {
	holder *controller
	since  int // the holder's incarnation
	epoch  int64
	frozen time.Time
}

func (l *lease) until(s *Sim) time.Time {
	if l.frozen.IsZero() {
		return s.Now().Add(s.config.LeaseDuration)
	}
	return l.frozen.Add(s.config.LeaseDuration)
}

func (l *lease) free(s *Sim) bool { return l.holder == nil || !s.Now().Before(l.until(s)) }

type role uint8

const (
	standby role = iota
	waiting      // leads, and outlasts the last leader's writes
	syncing      // waits for its caches
	taking       // writes its epoch into the tickets that are not granted
	leading
)

func (c *controller) leads() bool {
	return c.s.lease.holder == c && c.s.lease.since == c.incarnation
}

func (c *controller) freeze() {
	if l := &c.s.lease; c.leads() && l.frozen.IsZero() {
		l.frozen = c.s.Now()
	}
}

func (c *controller) offerLease(m *menu) {
	l := &c.s.lease
	switch {
	case c.role != standby && !c.leads():
		m.add(5, c.name, "notice", "") // another one leads: it starts over
	case c.role == standby && !c.leads() && l.free(c.s):
		m.add(10, c.name, "acquire", "")
	case c.role == waiting && !c.s.Now().Before(c.ready):
		m.add(10, c.name, "begin", "")
	case c.role == syncing && c.observer.synced():
		m.add(10, c.name, "take-over", "")
	case c.role == taking && !c.taking:
		m.add(10, c.name, "take-over", "")
	case c.mayCompare():
		m.add(10, c.name, "compare", "")
	}
}

// A leader believes Nodes' reports of cut-off storage once they agree with the NetworkFences, for the
// machines that it knows.
func (c *controller) mayCompare() bool {
	s := c.observer.snapshot()
	if c.role != leading || s.BelievesCutOff() {
		return false
	}
	for n := range s.Nodes() {
		if n.IsCutOff(driver) && !c.s.w.CutsOff(n.Name, n.SystemUUID) {
			return false
		}
	}
	return true
}

func (l *lease) heldBy(m *message) bool {
	return l.holder != nil && &l.holder.caller == m.caller && l.since == m.incarnation && m.incarnation == m.caller.incarnation
}

func (c *controller) actLease(what string) bool {
	l := &c.s.lease
	switch {
	case what == "notice" && c.role != standby && !c.leads():
		c.restart()
	case what == "acquire" && c.role == standby && !c.leads() && l.free(c.s):
		clean := l.holder == nil
		*l = lease{holder: c, since: c.incarnation, epoch: l.epoch + 1}
		c.role, c.memory.Epoch, c.ready = waiting, l.epoch, c.s.Now()
		if !clean {
			c.ready = c.s.Now().Add(c.s.config.WriteTimeout)
		}
		if c.s.config.CutsOff {
			c.observer.apply(ledger.CutOffBelieved{})
		}
	case what == "compare" && c.mayCompare():
		c.observer.apply(ledger.CutOffBelieved{Believed: true})
	case what == "begin" && c.role == waiting && !c.s.Now().Before(c.ready):
		c.role = syncing
	case what == "take-over" && (c.role == syncing && c.observer.synced() || c.role == taking && !c.taking):
		if c.role == syncing {
			c.s.w.Judge.Begins(c.s.w)
		}
		c.takeOver()
	default:
		return false
	}
	return true
}

func (c *controller) kill() {
	c.freeze()
	c.incarnation++
	c.up, c.paused, c.role = false, false, standby
}

func (c *controller) restart() {
	c.freeze()
	c.incarnation++
	c.up, c.paused, c.role = true, false, standby
	c.forget()
}

func (c *controller) pause() {
	c.freeze()
	c.paused = true
}

func (c *controller) resume() {
	c.paused = false
	c.observer.resume()
	if l := &c.s.lease; c.leads() && c.s.Now().Before(l.until(c.s)) {
		l.frozen = time.Time{}
	} else if c.leads() {
		l.holder, l.since = c, -1 // over: it has to start over
	}
}
