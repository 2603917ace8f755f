// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (s *state) machine(n int) *world.Machine { return s.w.Machines[machineID(node(n))] }

// podIndex is the number of a pod; 0 of none.
func podIndex(uid string) int {
	if len(uid) < 2 {
		return 0
	}
	return int(uid[1] - '0')
}

// attacherMoves are what the attacher does: each attachment by itself.
func (s *state) attacherMoves(list []move) []move {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		v, there := s.w.Attaches(a)
		name := fmt.Sprintf("%s at %s", v.Handle, a.Node)
		machine := machineID(a.Node)
		switch {
		case a.Deleting:
			list = append(list, move{"attacher detaches " + name, true, func(s *state) {
				s.w.Unpublish(v, machine)
				s.w.Serve(world.Request{Do: world.MarkDetached, Key: key, UID: a.UID})
			}})
		case !a.Attached && there:
			list = append(list, move{"attacher attaches " + name, true, func(s *state) {
				s.w.Publish(v, machine)
				s.w.Serve(world.Request{Do: world.MarkAttached, Key: key, UID: a.UID})
			}})
		}
	}
	return list
}

// schedulerMoves place pods at any node, withdraw, and bind; others bind
// without asking; users delete.
func (s *state) schedulerMoves(list []move) []move {
	for i := range s.config.Pods {
		uid := pod(i + 1)
		p, exists := s.w.Pod(uid)
		if !exists {
			continue
		}
		if s.config.Deletable[i] && p.Phase == ledger.PodLive {
			list = append(list, move{"user deletes " + uid, false, func(s *state) { s.w.DeletePod(uid) }})
		}
		if _, complete := s.w.VolumesOf(p); p.Node != "" || p.Phase != ledger.PodLive || !complete && s.config.Vanished > 0 {
			continue
		}
		if s.leader != nil && s.behind(world.Claims) {
			continue // a leader that takes a claim for missing reads it; that is not played here
		}
		list = s.placings(list, i, p)
	}
	return list
}

func (s *state) placings(list []move, i int, p ledger.Pod) []move {
	t, reserved := s.w.Ticket(ticketID(p.UID))
	for n := 1; n <= nodes; n++ {
		now, _ := s.w.Node(node(n))
		switch {
		case now.Ready != ledger.ReadyTrue:
		case s.config.Foreign[i]:
			list = append(list, move{fmt.Sprintf("somebody binds %s to %s", p.UID, node(n)), false, func(s *state) { s.w.BindPast(p.UID, node(n)) }})
		case !reserved && (s.config.Wild || s.sensible(p, n)):
			list = append(list, move{fmt.Sprintf("scheduler reserves %s for %s", node(n), p.UID), s.sensible(p, n) && !s.lags() && !s.passing(n), func(s *state) { s.reserve(p, node(n)) }})
		}
	}
	if reserved && (s.config.Wild || t.Phase == ledger.TicketRefused) {
		list = append(list, move{"scheduler withdraws " + p.UID, t.Phase == ledger.TicketRefused, func(s *state) {
			s.w.Serve(world.Request{Do: world.DropTicket, Key: t.ID.String(), UID: t.UID})
		}})
	}
	if reserved && t.Phase == ledger.TicketGranted {
		list = append(list, move{"scheduler binds " + p.UID, true, func(s *state) { s.bind(p.UID, t.Node) }})
	}
	return list
}

// sensible says whether a scheduler that knew all would place a pod there: no
// volume of it is claimed elsewhere, and there are slots. Only there a
// scheduler does so by itself.
func (s *state) sensible(p ledger.Pod, n int) bool {
	var here uint8
	for i, claims := range s.config.Pods {
		other, exists := s.w.Pod(pod(i + 1))
		t, reserved := s.w.Ticket(ticketID(pod(i + 1)))
		reserved = reserved && t.Phase != ledger.TicketRefused
		for _, claim := range claims {
			if exists && other.Node == node(n) || reserved && t.Node == node(n) {
				here |= bit(claim)
			}
			lives := exists && other.Phase == ledger.PodLive && other.Node != "" && other.Node != node(n) || reserved && t.Node != node(n)
			if lives && slices.Contains(s.config.Pods[podIndex(p.UID)-1], claim) {
				return false
			}
		}
	}
	if slices.ContainsFunc(s.config.Pods[podIndex(p.UID)-1], func(claim int) bool { return s.askedFor(claim, node(n)) }) {
		return false
	}
	for v := range s.config.Access {
		if s.w.Get(world.Attachments, attachmentName(v+1, n)) != nil {
			here |= bit(v + 1)
		}
	}
	for _, claim := range s.config.Pods[podIndex(p.UID)-1] {
		here |= bit(claim)
	}
	return bits.OnesCount8(here) <= int(s.config.slots(n))
}

// passing says whether a volume without an attachment has a slot at a node for a
// while: its creation is in flight, or the node's status names it still. Who is
// refused for that slot is not tried for ever before it is over.
func (s *state) passing(n int) bool {
	now, _ := s.w.Node(node(n))
	named := func(v ledger.VolumeID) bool {
		return s.w.Get(world.Attachments, attachmentName(podIndex(v.Handle), n)) == nil
	}
	return slices.ContainsFunc(now.InUse, named) || slices.ContainsFunc(now.Reported, named) ||
		s.leader != nil && s.leader.any(func(o op) bool {
			return o.task.Step.Do == arbiter.CreateAttachment && o.task.Step.Node == node(n)
		})
}

// fresh is a ledger that has just listed everything.
func (s *state) fresh() ledger.Snapshot {
	l := ledger.New()
	for _, k := range append(world.AllKinds(), world.NodeWords) {
		for _, e := range s.w.List(k) {
			l.Apply(s.w.Now, e)
		}
	}
	for n := 1; n <= nodes && s.config.Leases; n++ {
		for _, e := range s.w.Serve(readLease(node(n))).Facts {
			l.Apply(s.w.Now, e)
		}
	}
	return l.Snapshot()
}

func (s *state) reserve(p ledger.Pod, n ledger.NodeName) {
	t := ledger.Ticket{ID: ticketID(p.UID), Type: ledger.TypePod, Node: n, Scheduler: policy, Pod: p.UID, PodName: p.Name}
	for _, v := range p.Volumes {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: v.Claim, ClaimUID: v.Claim})
	}
	s.w.Serve(world.Request{Do: world.CreateTicket, Fact: t})
}

func (s *state) bind(uid string, n ledger.NodeName) {
	s.w.Serve(world.Request{Do: world.BindPod, UID: uid, Node: n})
}
