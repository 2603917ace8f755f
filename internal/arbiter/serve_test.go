// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// serve is the API server's answer to a request of the controller, which carries out
// a step, or decides on a ticket.
func (c *cluster) serve(r flow.Request, step arbiter.Step) flow.Answer {
	switch r.Do {
	case flow.GetObject:
		if slices.ContainsFunc(c.flying, func(s arbiter.Step) bool { return r.Kind == flow.Attachments && s.Attachment == r.Key }) {
			return flow.Answer{Result: flow.Unknown} // else it would prove too much
		}
		return answered(c.get(r))
	case flow.ListObjects:
		return flow.Answer{Result: flow.Done, Facts: c.listOf(r.Kind)}
	case flow.ListPods:
		a := flow.Answer{Result: flow.Done}
		for _, p := range c.podsAt(r.Node) {
			a.Facts = append(a.Facts, p)
		}
		return a
	}
	if c.refuses[step.Do.String()] || c.refuses[step.Do.String()+" "+string(step.Node)] {
		return flow.Answer{Result: flow.Refused}
	}
	switch r.Do {
	case flow.PutHold, flow.DropHold:
		return c.serveHold(r)
	case flow.CreateAttachment:
		return c.serveCreation(r, step)
	case flow.ConfirmAttachment, flow.MarkWanted, flow.DropAttachment:
		return c.serveAttachment(r)
	case flow.PatchNode:
		return c.servePatch(r)
	case flow.RemovePod:
		if _, ok := c.pods[r.UID]; !ok {
			return flow.Answer{Result: flow.NotFound}
		}
		c.deletePod(r.UID)
		return flow.Answer{Result: flow.Done}
	case flow.DecideTicket, flow.DropTicket:
		return c.serveTicket(r)
	}
	panic("nobody knows how to serve " + r.Do.String())
}

func answered(e ledger.Event, exists bool) flow.Answer {
	if !exists {
		return flow.Answer{Result: flow.NotFound}
	}
	return flow.Answer{Result: flow.Done, Facts: []ledger.Event{e}}
}

// listOf lists the objects of a kind.
func (c *cluster) listOf(k flow.Kind) []ledger.Event {
	var list []ledger.Event
	for _, e := range c.list() {
		switch e.(type) {
		case ledger.Ticket:
			if k == flow.Tickets {
				list = append(list, e)
			}
		case ledger.PersistentVolume:
			if k == flow.PersistentVolumes {
				list = append(list, e)
			}
		case ledger.Attachment:
			if k == flow.Attachments {
				list = append(list, e)
			}
		}
	}
	return list
}

func (c *cluster) get(r flow.Request) (ledger.Event, bool) {
	switch r.Kind {
	case flow.Tickets:
		for id, t := range c.tickets {
			if id.String() == r.Key {
				return t, true
			}
		}
	case flow.Pods:
		p, ok := c.pods[r.UID]
		return p, ok
	case flow.Claims:
		for key, k := range c.claims {
			if key.String() == r.Key {
				return k, true
			}
		}
	case flow.PersistentVolumes:
		pv, ok := c.pvs[r.Key]
		return pv, ok
	case flow.Nodes:
		n, ok := c.nodes[ledger.NodeName(r.Key)]
		return n, ok
	case flow.Attachments:
		a, ok := c.attachments[r.Key]
		return a, ok
	case flow.Holds:
		h, ok := c.holds[r.Volume]
		return ledger.HoldSeen{Volume: r.Volume, Hold: h}, ok
	}
	return nil, false
}

func (c *cluster) serveHold(r flow.Request) flow.Answer {
	old, exists := c.holds[r.Volume]
	switch {
	case !exists && r.Version != "":
		return flow.Answer{Result: flow.NotFound}
	case exists && r.Version == "":
		return flow.Answer{Result: flow.Exists}
	case old.Version != r.Version:
		return flow.Answer{Result: flow.Conflict}
	case r.Do == flow.DropHold:
		delete(c.holds, r.Volume)
		c.seen(ledger.HoldGone{Volume: r.Volume})
		return flow.Answer{Result: flow.Done}
	}
	c.putHold(r.Volume, r.Fact.(ledger.HoldSeen).Hold)
	return flow.Answer{Result: flow.Done}
}

func (c *cluster) serveCreation(r flow.Request, step arbiter.Step) flow.Answer {
	switch _, exists := c.attachments[r.Key]; {
	case c.mutes():
		c.flying = append(c.flying, step)
		return flow.Answer{Result: flow.Unknown}
	case exists:
		return flow.Answer{Result: flow.Exists}
	}
	c.putAttachment(c.created(step))
	return answered(c.attachments[r.Key], true)
}

func (c *cluster) serveAttachment(r flow.Request) flow.Answer {
	a, exists := c.attachments[r.Key]
	switch {
	case !exists:
		return flow.Answer{Result: flow.NotFound}
	case a.UID != r.UID, r.Version != "" && a.Version != r.Version:
		return flow.Answer{Result: flow.Conflict}
	case r.Do == flow.DropAttachment && a.Deleting:
		return flow.Answer{Result: flow.Done}
	case r.Do == flow.DropAttachment:
		c.judge.deletes(r.Volume, a.Node)
		a.Deleting, a.DeletedAt = true, c.now.Unix()
	case r.Do == flow.MarkWanted:
		a.Wanted = true
	case r.Do == flow.ConfirmAttachment:
		a.Confirmed = true
	}
	delete(c.disks.retry, a.Name) // external-attacher tries an object at once whose metadata have changed
	c.putAttachment(a)            // at a new version in any case
	return answered(c.attachments[r.Key], true)
}

// servePatch makes the change of a Node that a step asks for, and tests what the
// patch tests.
func (c *cluster) servePatch(r flow.Request) flow.Answer {
	node, exists := c.nodes[r.Node]
	patch, fits, _ := flow.Compose(node, []flow.Change{r.Change})
	switch {
	case !exists:
		return flow.Answer{Result: flow.NotFound}
	case len(fits) == 0:
		return flow.Answer{Result: flow.Unfit}
	case len(patch.Out)+len(patch.In) > 0:
		node.Reported = slices.DeleteFunc(slices.Clone(node.Reported), func(v ledger.VolumeID) bool { return slices.Contains(patch.Out, v) })
		node.Reported = append(node.Reported, patch.In...)
		c.putNode(node)
	}
	return answered(c.nodes[r.Node], true)
}

func (c *cluster) serveTicket(r flow.Request) flow.Answer {
	found, exists := c.get(flow.Request{Kind: flow.Tickets, Key: r.Key})
	now, _ := found.(ledger.Ticket)
	switch {
	case !exists:
		return flow.Answer{Result: flow.NotFound}
	case now.UID != r.UID, now.Version != r.Version:
		return flow.Answer{Result: flow.Conflict}
	case r.Do == flow.DropTicket:
		c.trace("ticket %s: ended", ticketName(now))
		c.deleteTicket(now.ID)
		return flow.Answer{Result: flow.Done}
	}
	if !r.EpochOnly {
		if r.Phase == ledger.TicketGranted {
			c.judge.grants(now)
		}
		now.Phase, now.Reason = r.Phase, string(r.Verdict.First().Code)
		c.trace("ticket %s at %s: %s%s", ticketName(now), now.Node, r.Phase, because(r.Verdict))
	}
	now.Epoch = max(now.Epoch, r.Epoch)
	c.putTicket(now)
	return answered(c.tickets[now.ID], true)
}
