// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// lease is the controllers' Lease: its holder, and until when all others must believe so.
type lease struct {
	holder *controller
	since  int // the holder's incarnation
	epoch  int64
	// frozen is when the holder stopped renewing, if it did: it is paused or dead.
	frozen time.Time
}

// until is the end of the lease: a working holder renews all the time.
func (l *lease) until(s *Sim) time.Time {
	if l.frozen.IsZero() {
		return s.Now().Add(s.config.LeaseDuration)
	}
	return l.frozen.Add(s.config.LeaseDuration)
}

// free says whether another process may take the lease.
func (l *lease) free(s *Sim) bool { return l.holder == nil || !s.Now().Before(l.until(s)) }

// role is a controller's stage.
type role uint8

const (
	standby role = iota
	waiting      // leads, and outlasts the last leader's writes
	syncing      // waits for its caches
	taking       // writes its epoch into the tickets that are not granted
	leading
)

// leads says whether this process holds the lease, as far as the lease knows.
func (c *controller) leads() bool {
	return c.s.lease.holder == c && c.s.lease.since == c.incarnation
}

// freeze stops the lease of a controller that stops.
func (c *controller) freeze() {
	if l := &c.s.lease; c.leads() && l.frozen.IsZero() {
		l.frozen = c.s.Now()
	}
}

// offerLease offers the actions of leader election.
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

// mayCompare says whether a leader may now believe Nodes' reports of storages that have cut them off: it
// has compared them with the NetworkFences, and they are true of the machines that it knows.
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

// heldBy says whether a message's sender holds the lease since then.
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

// kill ends the process at once: it forgets everything.
func (c *controller) kill() {
	c.freeze()
	c.incarnation++
	c.up, c.paused, c.role = false, false, standby
}

// restart begins anew, with nothing remembered.
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

// resume continues after a pause. A lease without a new holder is renewed.
func (c *controller) resume() {
	c.paused = false
	c.observer.resume()
	if l := &c.s.lease; c.leads() && c.s.Now().Before(l.until(c.s)) {
		l.frozen = time.Time{}
	} else if c.leads() {
		l.holder, l.since = c, -1 // over: it has to start over
	}
}
