// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// name tells what an op does next.
func (o op) name() string {
	switch o.request.Do {
	case world.GetObject:
		return "leader reads " + o.request.Key
	case world.DecideTicket:
		return "leader writes ticket " + o.request.Key + " " + o.request.Phase.String()
	case world.DropTicket:
		return "leader deletes ticket " + o.request.Key
	case world.ConfirmAttachment:
		return fmt.Sprintf("leader confirms the attachment of %s at %s", o.step.Volume.Handle, o.step.Node)
	}
	return fmt.Sprintf("leader does %s %s %s", o.step.Do, o.step.Volume.Handle, o.step.Node)
}

// add notes an op, in an order that does not depend on which was begun first.
func (l *leader) add(o op) {
	l.code = nil
	i, _ := slices.BinarySearchFunc(l.ops, o, func(a, b op) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.name(), b.name()))
	})
	l.ops = slices.Insert(slices.Clip(l.ops), i, o)
}

// begin makes an op's next request; an op with none is over.
func (s *state) begin(o op) {
	l := s.leader
	if o.step.Do == 0 {
		switch {
		case len(o.then) > 0:
			o.step, o.then = o.then[0], o.then[1:]
		case o.commit != nil:
			o.request, o.commit = *o.commit, nil
			l.add(o)
			return
		default:
			return
		}
	}
	o.request = s.requestOf(o.step)
	o.waits = false
	if o.request.Do == world.PatchNode && l.writing(o.step.Node) {
		o.request, o.waits = world.Request{}, true
	}
	if o.request.Do == 0 && !o.waits {
		l.again(o)
		return // it does not fit the Node as it is known: decided on old facts
	}
	l.add(o)
}

// writing says whether a patch of a node is under way.
func (l *leader) writing(n ledger.NodeName) bool {
	return slices.ContainsFunc(l.ops, func(o op) bool { return o.request.Do == world.PatchNode && o.step.Node == n })
}

// requestOf is the first request of a step.
func (s *state) requestOf(step arbiter.Step) world.Request {
	switch step.Do {
	case arbiter.WriteHold:
		return world.Request{Do: world.PutHold, Volume: step.Volume, Version: step.Expect, Fact: ledger.HoldSeen{Volume: step.Volume, Hold: step.Hold}}
	case arbiter.DeleteHold:
		return world.Request{Do: world.DropHold, Volume: step.Volume, Version: step.Expect}
	case arbiter.CreateAttachment:
		s.leader.apply(s.w.Now, ledger.AttachSent{Volume: step.Volume, Node: step.Node})
		return world.Request{Do: world.CreateAttachment, Stamp: true, Fact: ledger.Attachment{
			Name: step.Attachment, Driver: step.Volume.Driver, Node: step.Node, PersistentVolume: step.PV, Ours: true,
			Transitions: step.Transitions, NodeID: step.NodeID,
		}}
	case arbiter.Report:
		if !slices.Contains(s.leader.confirmed, step.UID) {
			return world.Request{Do: world.ConfirmAttachment, Key: step.Attachment, UID: step.UID}
		}
		return s.patch(step)
	case arbiter.Unreport:
		return s.patch(step)
	case arbiter.ConfirmUnwanted:
		return world.Request{Do: world.ListPods, Node: step.Node}
	case arbiter.DeleteAttachment:
		s.leader.confirm(step.UID, false)
		return world.Request{Do: world.DropAttachment, Key: step.Attachment, Options: execute.Deletion(step)}
	}
	return world.Request{Do: world.RemovePod, UID: step.UID}
}

// patch is the patch of the Node as the leader knows it; none when the step
// does not fit it.
func (s *state) patch(step arbiter.Step) world.Request {
	for _, n := range s.leader.nodes {
		if n.Name == step.Node && execute.Fits(world.NodeObject(n), step) {
			return world.Request{Do: world.PatchNode, Node: n.Name, Read: n, Steps: []arbiter.Step{step}}
		}
	}
	return world.Request{}
}

func (l *leader) confirm(uid string, is bool) {
	l.code = nil
	l.confirmed = slices.DeleteFunc(slices.Clone(l.confirmed), func(u string) bool { return u == uid })
	if is {
		l.confirmed = append(l.confirmed, uid)
		slices.Sort(l.confirmed)
	}
}

// take takes an op out.
func (l *leader) take(i int) op {
	o := l.ops[i]
	l.ops, l.code = slices.Delete(slices.Clone(l.ops), i, i+1), nil
	return o
}

// serve carries an op's request out, and takes the answer in.
func (s *state) serve(i int) {
	o := s.leader.take(i)
	s.answer(o, s.w.Serve(o.request))
	s.wake()
}

// wake lets what waits for a write of its node begin.
func (s *state) wake() {
	l := s.leader
	for i, o := range l.ops {
		if o.waits && !l.writing(o.step.Node) {
			s.begin(l.take(i))
			s.wake()
			return
		}
	}
}

// answer takes an answer in, as internal/execute does.
func (s *state) answer(o op, a world.Answer) {
	l, step := s.leader, o.step
	l.saw(s.w, a.Facts...)
	if a.Code != world.OK {
		s.refused(o, a)
		return
	}
	switch o.request.Do {
	case world.CreateAttachment:
		l.confirm(world.UIDOf(a.Facts[0]), true)
		l.settled(s.w, step)
	case world.ConfirmAttachment:
		if va, _ := a.Facts[0].(ledger.Attachment); va.Attached && !va.Deleting && va.UID == step.UID {
			l.confirm(step.UID, true)
			s.begin(op{key: o.key, step: step})
		} else {
			l.again(o)
		}
		return
	case world.PatchNode:
		if step.Do == arbiter.Unreport {
			l.apply(s.w.Now, ledger.Unreported{Volume: step.Volume, Node: step.Node, UID: step.UID, Version: step.Version, Forced: step.Rule != ""})
		}
	case world.ListPods:
		s.listed(o)
	case world.DropTicket:
		l.apply(s.w.Now, ledger.TicketReleased{ID: o.drops.ID, UID: o.drops.UID})
	case world.GetObject:
		if p, _ := a.Facts[0].(ledger.Pod); o.drops.Ghost && p.Node == "" {
			l.apply(s.w.Now, ledger.TicketReleased{ID: o.drops.ID, UID: o.drops.UID})
		}
	case world.PutHold:
		if o.commit != nil || len(o.then) > 0 {
			o.step = arbiter.Step{}
			s.begin(o)
		}
	}
}

// settled tells the ledger that it knows what came of a creation.
func (l *leader) settled(w *world.World, step arbiter.Step) {
	l.apply(w.Now, ledger.AttachSettled{Volume: step.Volume, Node: step.Node})
}

// refused looks at what a refused write was about.
func (s *state) refused(o op, a world.Answer) {
	l := s.leader
	read := func(k world.Kind, key string) {
		l.again(o)
		if e := s.w.Get(k, key); e != nil {
			l.saw(s.w, e)
		}
	}
	switch o.request.Do {
	case world.PutHold, world.DropHold:
		read(world.Holds, o.request.Volume.String())
	case world.CreateAttachment:
		read(world.Attachments, o.step.Attachment)
		l.settled(s.w, o.step)
	case world.DropAttachment:
		if a.Code == world.NotFound {
			return
		}
		read(world.Attachments, o.request.Key)
	case world.PatchNode:
		read(world.Nodes, string(o.request.Node))
	case world.DecideTicket:
		read(world.Tickets, o.request.Key)
	case world.ConfirmAttachment:
		l.again(o)
	case world.DropTicket:
		if a.Code == world.NotFound {
			l.apply(s.w.Now, ledger.TicketReleased{ID: o.drops.ID, UID: o.drops.UID})
		}
	case world.GetObject: // the pod is gone
		l.apply(s.w.Now, ledger.PodGone{UID: o.request.Key})
		if o.drops.Ghost {
			l.apply(s.w.Now, ledger.TicketReleased{ID: o.drops.ID, UID: o.drops.UID})
			return
		}
		l.add(op{key: o.key, request: dropTicket(o.drops), drops: o.drops})
	}
}

// listed proves that nobody wants a volume at a node, if that is so.
func (s *state) listed(o op) {
	for _, p := range s.w.PodsAt(o.step.Node) {
		list, _ := s.w.VolumesOf(p)
		if p.Phase != ledger.PodFinished && slices.Contains(list, o.step.Volume) {
			return
		}
	}
	s.leader.apply(s.w.Now, ledger.Unwanted{Volume: o.step.Volume, Node: o.step.Node, UID: o.step.UID, Version: o.step.Version})
}
