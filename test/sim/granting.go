// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

func (c *controller) grantAt(n ledger.NodeName) bool {
	if !c.grants.start(n) {
		return false
	}
	c.round(n)
	return true
}

func (c *controller) round(n ledger.NodeName) {
	now := decision{c.s.w.Version(), c.observer.handled[world.Pods]}
	s := c.observer.snapshot()
	decided := protocol.Round(c.arbiter.Queue(s, n, c.s.Now()), s, c.s.Now(), c.leftAlone, nil)
	for _, e := range protocol.Announce(decided) {
		c.observer.apply(e)
	}
	left, came := len(decided), protocol.Finished
	over := func() {
		c.grants.done(n, protocol.Resumes(c.observer.snapshot(), n, c.s.Now(), c.leftAlone), came)
	}
	if left == 0 {
		over()
		return
	}
	for _, d := range decided {
		c.decided[d.Ticket.UID] = now
		c.answer(d, func(end protocol.End) {
			c.refused.End(d.Ticket, end, whole, c.s.Now())
			came = together(came, end)
			if left--; left == 0 {
				over()
			}
		})
	}
}

func (c *controller) leftAlone(t *ledger.Ticket) time.Duration { return c.refused.Left(t, c.s.Now()) }

// together joins the errors of two attempts (errors.Join, protocol.AttemptEnd).
func together(a, b protocol.End) protocol.End {
	if a == protocol.Finished || b == protocol.Stale {
		return b
	}
	return a
}

func (c *controller) answer(d protocol.Decided, then func(protocol.End)) {
	t := d.Ticket
	c.s.note("%s decides on ticket %s at %s: %s %s", c.name, t.ID.Name, t.Node, d.Verdict.Outcome, d.Verdict.First().Code)
	task := protocol.Decide(d)
	if c.says(task) {
		then(protocol.Finished)
		return
	}
	c.do(task, then)
}

func (c *controller) says(t protocol.Task) bool {
	r := t.Commit
	return r.Phase == t.Ticket.Phase && string(r.Verdict.First().Code) == t.Ticket.Reason
}

func (c *controller) tend(id ledger.TicketID) bool {
	if !c.tickets.start(id) {
		return false
	}
	s := c.observer.snapshot()
	t := s.Ticket(id)
	if t == nil {
		c.tickets.done(id, 0, protocol.Finished)
		return true
	}
	if t.Phase == ledger.TicketPending && t.Node != "" {
		c.grants.add(t.Node)
	}
	left := c.left(t)
	if t.TTLSeconds > 0 && left <= 0 {
		c.do(protocol.Ending(t), func(end protocol.End) { c.tickets.done(id, 0, end) })
		return true
	}
	left = protocol.Sooner(left, rules.NoticeLeft(t, c.s.Now()))
	left = protocol.Sooner(left, rules.PlacedAgain(t, c.s.Now()))
	task, due := protocol.Due(c.arbiter, s, t, c.arbiter.Keeps(s, t, c.s.Now()), c.s.Now())
	if !due {
		task, due = c.satisfied(s, t)
	}
	if !due {
		c.tickets.done(id, left, protocol.Finished)
		return true
	}
	c.do(task, func(end protocol.End) { c.tickets.done(id, left, end) })
	return true
}

func (c *controller) satisfied(s ledger.Snapshot, t *ledger.Ticket) (protocol.Task, bool) {
	if !c.s.config.Asked || t.Phase != ledger.TicketGranted && t.SatisfiedSince == 0 {
		return protocol.Task{}, false
	}
	is := c.arbiter.Satisfied(s, t, c.s.Now()).Allowed()
	if is == (t.SatisfiedSince != 0) {
		return protocol.Task{}, false
	}
	status := ledger.Ticket{}
	if is {
		status.SatisfiedSince = c.s.Now().Unix()
	}
	task := protocol.Write(t)
	task.Commit.Fact = status
	return task, true
}

func (c *controller) left(t *ledger.Ticket) time.Duration {
	if t.TTLSeconds == 0 {
		return 0
	}
	if _, seen := c.ages[t.UID]; !seen {
		c.ages[t.UID] = c.s.Now()
	}
	return time.Duration(t.TTLSeconds)*time.Second - c.s.Now().Sub(c.ages[t.UID])
}
