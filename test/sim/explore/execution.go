// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// Requests are in flight in any order.

func (w wire) name() string {
	o := w.ops[0]
	switch step := o.task.Step; w.request.Do {
	case world.GetObject:
		return "leader reads " + w.request.Key
	case world.DecideTicket:
		if w.request.EpochOnly {
			return "leader takes ticket " + w.request.Key + " over"
		}
		return "leader writes ticket " + w.request.Key + " " + w.request.Phase.String()
	case world.DropTicket:
		return "leader deletes ticket " + w.request.Key
	case world.ConfirmAttachment:
		return fmt.Sprintf("leader confirms the attachment of %s at %s", step.Volume.Handle, step.Node)
	case world.PutHold:
		return fmt.Sprintf("leader does %s %s %s", rules.WriteHold, w.request.Volume.Handle, w.request.Node)
	}
	var all []string
	for _, o := range w.ops {
		all = append(all, fmt.Sprintf("%s %s %s", o.task.Step.Kind, o.task.Step.Volume.Handle, o.task.Step.Node))
	}
	return "leader does " + strings.Join(all, ", ")
}

func (l *leader) any(such func(op) bool) bool {
	return slices.ContainsFunc(l.waiting, such) ||
		slices.ContainsFunc(l.wires, func(w wire) bool { return slices.ContainsFunc(w.ops, such) })
}

func (l *leader) busy(key string) bool { return l.any(func(o op) bool { return o.key == key }) }

func (s *state) begin(key string, t protocol.Task) { s.goOn(op{key: key, task: t}) }

func (s *state) goOn(o op) {
	l := s.leader
	t, m := l.memory.Next(o.task, l.ledger.Snapshot(), s.w.Now)
	s.follow(op{key: o.key, task: t}, m)
	s.compose()
}

func (s *state) follow(o op, m protocol.Move) {
	l := s.leader
	l.code = nil
	for _, e := range m.Tell {
		l.apply(s.w.Now, e)
	}
	switch {
	case m.End == protocol.Finished:
	case m.End != protocol.Going:
		l.again(o.key)
	case m.Send != nil && m.Send.Kind == rules.PatchNode:
		l.wait(o) // for its turn
	case !m.Wait.IsZero():
		o.waits = true
		l.wait(o)
	case m.Send != nil:
		sent := world.Sent(*m.Send, true)
		if sent.Do == world.DropAttachment && o.task.Step.Rule != "" {
			sent.Since = l.looked
		}
		l.send(wire{sent, []op{o}})
	default:
		s.goOn(o)
	}
}

func (l *leader) send(w wire) {
	l.code = nil
	i, _ := slices.BinarySearchFunc(l.wires, w, func(a, b wire) int {
		return cmp.Or(strings.Compare(a.ops[0].key, b.ops[0].key), strings.Compare(a.name(), b.name()))
	})
	l.wires = slices.Insert(slices.Clip(l.wires), i, w)
}

func (l *leader) wait(o op) {
	i, _ := slices.BinarySearchFunc(l.waiting, o, func(a, b op) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.task.Sent.Kind, b.task.Sent.Kind), strings.Compare(string(a.task.Step.Node), string(b.task.Step.Node)))
	})
	l.waiting = slices.Insert(slices.Clip(l.waiting), i, o)
}

func (l *leader) take(i int) wire {
	w := l.wires[i]
	l.wires, l.code = slices.Delete(slices.Clone(l.wires), i, i+1), nil
	return w
}

func (s *state) serve(i int) {
	w := s.leader.take(i)
	a := s.w.Serve(w.request)
	if w.request.Looks() {
		s.leader.looked = a.At
	}
	s.leader.saw(s.w, a.Facts...)
	s.answer(w, protocol.Answer{Result: a.Code.Result(), Facts: a.Facts})
	s.leader.looked = 0
}

func (s *state) answer(w wire, a protocol.Answer) {
	for _, o := range w.ops {
		s.answerOne(o, a)
	}
	s.compose()
}

func (s *state) answerOne(o op, a protocol.Answer) {
	l := s.leader
	t, m := l.memory.Answer(o.task, a, l.ledger.Snapshot(), s.w.Now)
	next := op{key: o.key, task: t}
	if !m.Wait.IsZero() {
		next.late = o.late
	}
	s.follow(next, m)
}

// outlasted lists tasks whose unanswered request can have no effect any more.
func (s *state) outlasted() []int {
	var list []int
	for i, o := range s.leader.waiting {
		if o.late != nil && !slices.Contains(s.orphans, o.late) || o.late == nil && o.waits && s.shows(o.task.Step.Node) {
			list = append(list, i)
		}
	}
	return list
}

func (s *state) shows(n ledger.NodeName) bool {
	is, exists := s.w.Node(n)
	known := s.leader.ledger.Snapshot().Node(n)
	return (known != nil && known.Exists) == exists && (!exists || known.UID == is.UID)
}

func (s *state) outlast(i int) {
	l := s.leader
	o := l.waiting[i]
	l.waiting, l.code = slices.Delete(slices.Clone(l.waiting), i, i+1), nil
	s.goOn(op{key: o.key, task: o.task})
}

func (s *state) compose() {
	for n := 1; n <= nodes; n++ {
		s.composeFor(s.leader.nodes[n-1], node(n))
	}
}

func (s *state) composeFor(known ledger.NodeState, name ledger.NodeName) {
	l := s.leader
	ofNode := func(o op) bool {
		return o.task.Sent.Kind == rules.PatchNode && o.task.Sent.Node == name && o.late == nil
	}
	if !slices.ContainsFunc(l.waiting, ofNode) ||
		slices.ContainsFunc(l.wires, func(w wire) bool { return w.request.Do == world.PatchNode && w.request.Node == name }) {
		return
	}
	var ops, left, fitting []op
	var changes []protocol.Change
	for _, o := range l.waiting {
		if !ofNode(o) {
			left = append(left, o)
			continue
		}
		ops, changes = append(ops, o), append(changes, o.task.Sent.Change)
	}
	l.waiting, l.code = left, nil
	patch, fits, stale := protocol.Compose(known, changes)
	for _, i := range fits {
		fitting = append(fitting, ops[i])
	}
	if len(fits) > 0 {
		l.send(wire{world.SentPatch(known, patch), fitting})
	}
	for _, i := range stale {
		s.answerOne(ops[i], protocol.Answer{Result: protocol.Unfit})
	}
}
