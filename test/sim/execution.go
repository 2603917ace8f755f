// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// do reports a task's end when the ledger knows its effect. internal/protocol makes the requests and reads
// the answers.
func (c *controller) do(t protocol.Task, then func(protocol.End)) {
	t, m := c.memory.Next(t, c.observer.snapshot(), c.s.Now())
	c.follow(t, m, then)
}

func (c *controller) follow(t protocol.Task, m protocol.Move, then func(protocol.End)) {
	for _, e := range m.Tell {
		c.observer.apply(e)
	}
	switch {
	case m.End != protocol.Going:
		then(m.End)
	case m.Send != nil:
		c.send(t, *m.Send, then)
	case !m.Wait.IsZero():
		c.outlasted = append(c.outlasted, pause{m.Wait, func() { c.do(t, then) }})
	default:
		c.do(t, then)
	}
}

// Changes of a node, and lists of its pods, share requests.
func (c *controller) send(t protocol.Task, r protocol.Request, then func(protocol.End)) {
	e := &entry{r, func(a protocol.Answer) {
		t, m := c.memory.Answer(t, a, c.observer.snapshot(), c.s.Now())
		c.follow(t, m, then)
	}}
	switch r.Kind {
	case rules.PatchNode:
		c.join(c.writes, e, c.writeNode)
	case rules.ListPods:
		if !r.Until.IsZero() {
			c.listPods(r.Node, []*entry{e}, func() {}) // its time begins with the list
			return
		}
		c.join(c.lists, e, c.listPods)
	default:
		sent := world.Sent(r, c.s.w.Stamps)
		if r.Kind == rules.DeleteAttachment && t.Step.Rule != "" {
			sent.Since = c.looked
		}
		if r.Kind == rules.DecideTicket {
			sent.Since, sent.Decided = c.decided[t.Ticket.UID].seen, c.decided[t.Ticket.UID].at
		}
		c.write(requestOp(t, r), r, sent, e.then)
	}
}

func (c *controller) write(op string, r protocol.Request, sent world.Request, then func(protocol.Answer)) {
	now := c.s.Now()
	deadline := now.Add(c.s.config.WriteTimeout)
	if !r.Until.IsZero() && r.Until.Before(deadline) {
		deadline = r.Until
	}
	if end := c.s.lease.until(c.s); c.leads() && end.Before(deadline) {
		deadline = end
	}
	if !c.leads() || !now.Before(deadline) {
		then(protocol.Answer{Result: protocol.NotSent})
		return
	}
	c.s.net.send(&c.caller, op, deadline, sent, func(a world.Answer, err error) {
		if err != nil {
			then(protocol.Answer{Result: protocol.Unknown})
			return
		}
		c.observer.saw(a.Facts...)
		if sent.Looks() {
			c.looked = a.At
		}
		then(protocol.Answer{Result: a.Code.Result(), Facts: a.Facts})
		c.looked = 0
	})
}

func requestOp(t protocol.Task, r protocol.Request) string {
	switch r.Kind {
	case rules.GetObject:
		switch {
		case r.Object == protocol.Attachments && t.Step.Kind != rules.DeleteAttachment:
			return "find " + stepOp(t.Step)
		case t.Step.Kind == rules.ProveAbsent:
			return stepOp(t.Step)
		}
		return "get " + r.Object.String() + " " + r.Key
	case rules.ListObjects:
		return "list " + r.Object.String()
	case rules.WriteHold:
		return rules.WriteHold.String() + " " + volumeArg(r.Volume)
	case rules.DeleteHold:
		return rules.DeleteHold.String() + " " + volumeArg(r.Volume)
	case rules.ConfirmAttachment:
		return "confirm " + stepOp(t.Step)
	case rules.RemovePod:
		return "remove pod " + r.UID
	case rules.DecideTicket:
		return "decide " + t.Ticket.ID.Name
	case rules.DeleteTicket:
		return "drop ticket " + t.Ticket.ID.Name
	}
	return stepOp(t.Step)
}

func stepOp(s rules.Step) string {
	return fmt.Sprintf("%s %s %s", s.Kind, volumeArg(s.Volume), s.Node)
}

type batch struct {
	busy    bool
	pending []*entry
}

type entry struct {
	request protocol.Request
	then    func(protocol.Answer)
}

// If no request about the node is in flight, the entry's request begins at once.
func (c *controller) join(of map[ledger.NodeName]*batch, e *entry, send func(ledger.NodeName, []*entry, func())) {
	n := e.request.Node
	b := of[n]
	if b == nil {
		b = &batch{}
		of[n] = b
	}
	b.pending = append(b.pending, e)
	if !b.busy {
		b.busy = true
		c.drain(b, n, send)
	}
}

func (c *controller) drain(b *batch, n ledger.NodeName, send func(ledger.NodeName, []*entry, func())) {
	entries := b.pending
	b.pending = nil
	if len(entries) == 0 {
		b.busy = false
		return
	}
	send(n, entries, func() { c.drain(b, n, send) })
}

func (c *controller) writeNode(n ledger.NodeName, entries []*entry, next func()) {
	node, known := c.observer.get(world.Nodes, string(n)).(ledger.NodeState)
	var changes []protocol.Change
	for _, e := range entries {
		changes = append(changes, e.request.Change)
	}
	patch, fits, stale := protocol.Compose(node, changes)
	if !known {
		stale, fits = append(stale, fits...), nil
	}
	for _, i := range stale {
		entries[i].then(protocol.Answer{Result: protocol.Unfit})
	}
	if len(fits) == 0 {
		next()
		return
	}
	c.write("patch "+string(n), protocol.Request{}, world.SentPatch(node, patch), func(a protocol.Answer) {
		for _, i := range fits {
			entries[i].then(a)
		}
		next()
	})
}

func (c *controller) listPods(n ledger.NodeName, entries []*entry, next func()) {
	r := entries[0].request
	c.write("list pods of "+string(n), r, world.Sent(r, false), func(a protocol.Answer) {
		for _, e := range entries {
			e.then(a)
		}
		next()
	})
}
