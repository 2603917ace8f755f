// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/moorage-dev/moorage/controller/ticket"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// grantAt decides on the pending tickets of one node, round by round, as
// controller/ticket does; what one round decides is written side by side.
func (c *controller) grantAt(n ledger.NodeName) bool {
	if !c.grants.start(n) {
		return false
	}
	c.round(n)
	return true
}

func (c *controller) round(n ledger.NodeName) {
	decided, again := ticket.Round(c.arbiter, c.observer.snapshot(), n, c.s.Now())
	left, failed := len(decided), error(nil)
	end := func() {
		if failed != nil || !again {
			c.grants.done(n, 0, failed)
			return
		}
		c.round(n)
	}
	if left == 0 {
		end()
		return
	}
	for _, d := range decided {
		c.answer(d.Ticket, d.Decision, func(err error) {
			failed = worse(failed, err)
			if left--; left == 0 {
				end()
			}
		})
	}
}

// worse is the error of the two that asks for the longer pause.
func worse(a, b error) error {
	if a == nil || b != nil && a == errStale {
		return b
	}
	return a
}

// answer writes what a decision says: its holds first, then the ticket.
func (c *controller) answer(t *ledger.Ticket, d ticket.Decision, then func(error)) {
	c.s.note("%s decides on ticket %s at %s: %s %s", c.name, t.ID.Name, t.Node, d.Verdict.Outcome, d.Verdict.First().Code)
	switch d.Answer {
	case ticket.Grant:
		c.writeHolds(d.Holds, func(err error) {
			if err != nil {
				then(err)
				return
			}
			c.sentence(t, ledger.TicketGranted, d.Verdict, then)
		})
	case ticket.Refuse:
		c.prove(t, d, func(err error) {
			if err != nil {
				then(err)
				return
			}
			c.sentence(t, ledger.TicketRefused, d.Verdict, then)
		})
	default:
		c.sentence(t, ledger.TicketPending, d.Verdict, then)
	}
}

func (c *controller) writeHolds(steps []arbiter.Step, then func(error)) {
	if len(steps) == 0 {
		then(nil)
		return
	}
	c.s.note("%s %s", c.name, stepText(steps[0]))
	c.do(steps[0], func(err error) {
		if err != nil {
			then(err)
			return
		}
		c.writeHolds(steps[1:], then)
	})
}

// sentence writes condition Granted on exactly the version of the ticket that
// was decided on, unless it says so already.
func (c *controller) sentence(t *ledger.Ticket, phase ledger.TicketPhase, v arbiter.Verdict, then func(error)) {
	now, known := c.observer.get(world.Tickets, t.ID.String()).(ledger.Ticket)
	if !known || now.Version != t.Version {
		then(errStale)
		return
	}
	reason := string(v.First().Code)
	if now.Phase == phase && now.Reason == reason {
		then(nil)
		return
	}
	c.decideTicket(now, world.Request{
		Do: world.DecideTicket, Key: t.ID.String(), UID: now.UID, Version: now.Version,
		Phase: phase, Reason: reason, Epoch: max(now.Epoch, c.epoch),
	}, then)
}

// decideTicket writes a ticket's status; a conflict is followed by a look at
// what it is now.
func (c *controller) decideTicket(t ledger.Ticket, r world.Request, then func(error)) {
	c.write("decide "+t.ID.Name, r, func(a world.Answer, err error) {
		switch {
		case err == errNoLease:
			then(err)
		case err != nil: // settled before the next is decided
			c.outlast(func() { c.reread(world.Tickets, r.Key, then) })
		case a.Code == world.OK:
			c.observer.saw(a.Facts...)
			then(nil)
		case a.Code == world.NotFound:
			then(errStale)
		default:
			c.reread(world.Tickets, r.Key, then)
		}
	})
}

// reread takes in an object as it is now; the end is always errStale, or why
// it could not be read.
func (c *controller) reread(k world.Kind, key string, then func(error)) {
	c.write("get "+k.String()+" "+key, world.Request{Do: world.GetObject, Kind: k, Key: key}, func(a world.Answer, err error) {
		if err != nil {
			then(err)
			return
		}
		c.observer.saw(a.Facts...)
		then(errStale)
	})
}

// tend looks at a ticket apart from granting it.
func (c *controller) tend(id ledger.TicketID) bool {
	if !c.tickets.start(id) {
		return false
	}
	s := c.observer.snapshot()
	t := s.Ticket(id)
	if t == nil || t.Ghost {
		c.tickets.done(id, 0, nil)
		return true
	}
	if t.Phase == ledger.TicketPending {
		c.grants.add(t.Node)
	}
	if t.Type == ledger.TypePod {
		c.tendPod(s, t, func(err error) { c.tickets.done(id, 0, err) })
		return true
	}
	left := c.left(t)
	if t.TTLSeconds > 0 && left <= 0 {
		c.dropTicket(t, func(err error) { c.tickets.done(id, 0, err) })
		return true
	}
	c.keep(s, t, func(err error) { c.tickets.done(id, left, err) })
	return true
}

// left is how long a ticket has left to live; 0 when it has no end.
func (c *controller) left(t *ledger.Ticket) time.Duration {
	if t.TTLSeconds == 0 {
		return 0
	}
	if _, seen := c.ages[t.UID]; !seen {
		c.ages[t.UID] = c.s.Now()
	}
	return time.Duration(t.TTLSeconds)*time.Second - c.s.Now().Sub(c.ages[t.UID])
}

// tendPod ends a pod's reservation when the pod counts by itself, or is proved
// to be gone.
func (c *controller) tendPod(s ledger.Snapshot, t *ledger.Ticket, then func(error)) {
	covered, gone := c.arbiter.Covered(s, t)
	switch {
	case gone:
		c.observer.confirmPod(t.Pod, func(p *ledger.Pod, err error) {
			if err != nil || p != nil {
				then(err)
				return
			}
			c.dropTicket(t, then)
		})
	case covered:
		c.dropTicket(t, then)
	default:
		c.keep(s, t, then)
	}
}

// keep takes a grant back that must not last.
func (c *controller) keep(s ledger.Snapshot, t *ledger.Ticket, then func(error)) {
	if t.Phase != ledger.TicketGranted {
		then(nil)
		return
	}
	v := c.arbiter.Keeps(s, t, c.s.Now())
	if v.Allowed() {
		v = ticket.Exhausted(s, t)
	}
	if v.Allowed() {
		then(nil)
		return
	}
	c.prove(t, ticket.Decision{Verdict: v, Missing: ticket.Missing(s, t)}, func(err error) {
		if err != nil {
			then(err)
			return
		}
		c.sentence(t, ledger.TicketRefused, v, then)
	})
}

// prove reads, as they are now, the node and the claims that a refusal takes for
// missing. What is there has the ticket decided anew.
func (c *controller) prove(t *ledger.Ticket, d ticket.Decision, then func(error)) {
	if !ticket.WithoutNode(d.Verdict) {
		c.proveClaims(t, d.Missing, then)
		return
	}
	c.read(world.Nodes, string(t.Node), func(e ledger.Event, err error) {
		switch {
		case err != nil:
			then(err)
		case e != nil:
			then(errStale)
		default:
			c.proveClaims(t, d.Missing, then)
		}
	})
}

func (c *controller) proveClaims(t *ledger.Ticket, missing []ledger.TicketVolume, then func(error)) {
	if len(missing) == 0 {
		then(nil)
		return
	}
	v := missing[0]
	c.read(world.Claims, ledger.ClaimKey{Namespace: t.ID.Namespace, Name: v.Claim}.String(), func(e ledger.Event, err error) {
		claim, found := e.(ledger.Claim)
		switch {
		case err != nil:
			then(err)
		case found && (v.ClaimUID == "" || claim.UID == v.ClaimUID):
			then(errStale)
		default:
			c.proveClaims(t, missing[1:], then)
		}
	})
}

// dropTicket deletes exactly the version of a ticket that was decided on, and
// ends its reservation when it is gone, not before.
func (c *controller) dropTicket(t *ledger.Ticket, then func(error)) {
	r := world.Request{Do: world.DropTicket, Key: t.ID.String(), UID: t.UID, Version: t.Version}
	c.write("drop ticket "+t.ID.Name, r, func(a world.Answer, err error) {
		switch {
		case err != nil:
			then(err)
		case a.Code == world.Conflict:
			then(errStale)
		default:
			c.observer.apply(ledger.TicketReleased{ID: t.ID, UID: t.UID})
			then(nil)
		}
	})
}
