// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (s *state) machine(n int) *world.Machine { return s.w.Machines[machineID(node(n))] }

func podIndex(uid string) int {
	if len(uid) < 2 {
		return 0
	}
	return int(uid[1] - '0')
}

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
			continue // a leader reads a claim that seems missing; that is not played here
		}
		list = s.placings(list, i, p)
	}
	return list
}

// A binding has the node's number, and whether its scheduler is gone. Zero: none. An unanswered Binding is
// sent again to the same node, without a difference here.
type binding uint8

const orphaned binding = 1 << 7

func (b binding) node() int { return int(b &^ orphaned) }

func (s *state) placings(list []move, i int, p ledger.Pod) []move {
	if sent := s.sent[i]; sent != 0 {
		return s.bindings(list, i, p.UID, sent)
	}
	for n := 1; n <= nodes; n++ {
		now, _ := s.w.Node(node(n))
		switch {
		case now.Ready != ledger.ReadyTrue:
		case s.config.Foreign[i]:
			list = append(list, move{fmt.Sprintf("somebody binds %s to %s", p.UID, node(n)), false, func(s *state) { s.w.BindPast(p.UID, node(n)) }})
		case s.succeeds(i):
		case s.config.Wild || s.sensible(p, n):
			list = append(list, move{fmt.Sprintf("scheduler sends the Binding of %s to %s", p.UID, node(n)), s.sensible(p, n), func(s *state) { s.sent[i] = binding(n) }})
		}
	}
	return list
}

func (s *state) bindings(list []move, i int, uid string, sent binding) []move {
	name := fmt.Sprintf("Binding of %s to %s", uid, node(sent.node()))
	carriedOut := func(s *state) {
		s.w.Serve(world.Request{Do: world.BindPod, UID: uid, Node: node(sent.node())})
		s.sent[i] = 0
	}
	if sent&orphaned != 0 {
		return append(list, move{"late: " + name, false, carriedOut}, move{"lost: " + name, true, func(s *state) { s.sent[i] = 0 }})
	}
	if s.left < s.config.Successors && !s.config.rival(i) {
		list = append(list, move{"scheduler is gone, and leaves the " + name, false, func(s *state) { s.leave() }})
	}
	return append(list, move{name, true, carriedOut})
}

// The ended scheduler's Bindings may be carried out until its successor begins.
func (s *state) leave() {
	s.left++
	for i := range s.config.Pods {
		if s.sent[i] != 0 && !s.config.rival(i) {
			s.sent[i] |= orphaned
		}
	}
}

func (s *state) succeeds(i int) bool {
	return !s.config.rival(i) && slices.ContainsFunc(s.sent[:], func(b binding) bool { return b&orphaned != 0 })
}

func (s *state) sensible(p ledger.Pod, n int) bool {
	var here uint8
	own := podIndex(p.UID) - 1
	for i, claims := range s.config.Pods {
		other, exists := s.w.Pod(pod(i + 1))
		to := 0
		if s.config.rival(i) == s.config.rival(own) {
			to = s.sent[i].node()
		}
		for _, claim := range claims {
			if exists && other.Node == node(n) || to == n {
				here |= bit(claim)
			}
			lives := exists && other.Phase == ledger.PodLive && other.Node != "" && other.Node != node(n) || to != 0 && to != n
			if lives && slices.Contains(s.config.Pods[own], claim) {
				return false
			}
		}
	}
	if slices.ContainsFunc(s.config.Pods[own], func(claim int) bool { return s.askedFor(claim, node(n)) }) {
		return false
	}
	for v := range s.config.Access {
		if s.w.Get(world.Attachments, attachmentName(v+1, n)) != nil {
			here |= bit(v + 1)
		}
	}
	for _, claim := range s.config.Pods[own] {
		here |= bit(claim)
	}
	return bits.OnesCount8(here) <= int(s.config.slots(n))
}

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
