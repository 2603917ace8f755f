// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

func (s *state) machine(n int) *world.Machine { return s.w.Machines[machineID(node(n))] }

// podIndex is the number of a pod.
func podIndex(uid string) int { return int(uid[1] - '0') }

// desired are the volumes of the pods that a kubelet is to run.
func (s *state) desired(n int) uint8 {
	var set uint8
	for _, p := range s.w.PodsAt(node(n)) {
		if p.Phase != ledger.PodFinished && s.kubelets[n-1].ended&bit(podIndex(p.UID)) == 0 {
			for _, claim := range s.config.Pods[podIndex(p.UID)-1] {
				set |= bit(claim)
			}
		}
	}
	return set
}

// uses are the volumes that belong into volumesInUse.
func (s *state) uses(n int) []ledger.VolumeID {
	var list []ledger.VolumeID
	set := s.desired(n) | s.kubelets[n-1].attached
	for i := range s.config.Access {
		if set&bit(i+1) != 0 {
			list = append(list, volume(i+1))
		}
	}
	return list
}

// kubeletMoves are what kubelets do, in the order of the handshake.
func (s *state) kubeletMoves(list []move) []move {
	for n := 1; n <= nodes; n++ {
		k, m := s.kubelets[n-1], s.machine(n)
		if !k.up || !m.Powered {
			continue
		}
		name := string(node(n))
		if s.news(n) {
			list = append(list, move{name + " reports its volumes in use", true, func(s *state) { s.report(n) }})
		}
		for i := range s.config.Access {
			if s.attachable(n, i+1) {
				list = append(list, move{fmt.Sprintf("%s finds v%d in volumesAttached", name, i+1), true, func(s *state) { s.kubelets[n-1].attached |= bit(i + 1) }})
			}
			if k.attached&bit(i+1) != 0 && s.desired(n)&bit(i+1) == 0 && !m.Uses(volume(i+1)) {
				list = append(list, move{fmt.Sprintf("%s lets go of v%d", name, i+1), true, func(s *state) { s.release(n) }})
			}
		}
		for i := range s.config.Pods {
			list = s.podMoves(list, n, i+1)
		}
	}
	return list
}

func (s *state) podMoves(list []move, n, i int) []move {
	name, uid := string(node(n)), pod(i)
	p, exists := s.w.Pod(uid)
	here := exists && p.Node == node(n)
	ended := s.kubelets[n-1].ended&bit(i) != 0
	if here && p.Phase == ledger.PodLive && !ended {
		for _, claim := range s.config.Pods[i-1] {
			if s.mountable(n, claim, uid) {
				list = append(list, move{fmt.Sprintf("%s mounts v%d for %s", name, claim, uid), true, func(s *state) { s.w.Mount(s.machine(n), volume(claim), uid) }})
			}
		}
	}
	mounted := slices.ContainsFunc(s.config.Pods[i-1], func(claim int) bool { return slices.Contains(s.machine(n).Mounts[volume(claim)], uid) })
	if mounted && (!here || p.Phase == ledger.PodTerminating) || here && p.Phase == ledger.PodTerminating && !ended {
		list = append(list, move{name + " ends " + uid, true, func(s *state) { s.end(n, i) }})
	}
	if here && p.Phase == ledger.PodTerminating && ended && !mounted {
		list = append(list, move{name + " removes " + uid, true, func(s *state) { s.w.Serve(world.Request{Do: world.RemovePod, UID: uid}) }})
	}
	return list
}

// news says whether the next tick of the status would tell or mark anything.
func (s *state) news(n int) bool {
	now, exists := s.w.Node(node(n))
	k := s.kubelets[n-1]
	return exists && (now.Ready != ledger.ReadyTrue || s.desired(n)&^k.told != 0 || !slices.Equal(now.InUse, s.uses(n)))
}

func (s *state) report(n int) {
	s.w.Serve(world.Request{Do: world.ReportUse, Node: node(n), InUse: s.uses(n)})
	s.kubelets[n-1].told = s.desired(n)
}

// attachable: told to be in use, and in volumesAttached as it is now.
func (s *state) attachable(n, i int) bool {
	k := s.kubelets[n-1]
	now, _ := s.w.Node(node(n))
	return k.told&bit(i) != 0 && k.attached&bit(i) == 0 && s.desired(n)&bit(i) != 0 && slices.Contains(now.Reported, volume(i))
}

// mountable: held for attached, and the VolumeAttachment says so, too.
func (s *state) mountable(n, claim int, uid string) bool {
	a, _ := s.w.Attachment(attachmentName(claim, n))
	return s.kubelets[n-1].attached&bit(claim) != 0 && a.Attached && !a.Deleting && !slices.Contains(s.machine(n).Mounts[volume(claim)], uid)
}

// end ends a pod's containers, and its mounts; what nobody uses any more is no
// longer held for attached.
func (s *state) end(n, i int) {
	k, m := &s.kubelets[n-1], s.machine(n)
	k.ended |= bit(i)
	for _, claim := range s.config.Pods[i-1] {
		m.Unmount(volume(claim), pod(i))
	}
	s.release(n)
}

// release has a kubelet forget what nobody at its node uses any more.
func (s *state) release(n int) {
	k, desired := &s.kubelets[n-1], s.desired(n)
	for i := range s.config.Access {
		if desired&bit(i+1) == 0 && !s.machine(n).Uses(volume(i+1)) {
			k.attached &^= bit(i + 1)
		}
	}
	k.told &= desired
}

// attacherMoves are what the attacher does: each attachment by itself.
func (s *state) attacherMoves(list []move) []move {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		v, _ := s.w.Source(a)
		name := fmt.Sprintf("%s at %s", v.Handle, a.Node)
		machine := machineID(a.Node)
		switch {
		case a.Deleting:
			list = append(list, move{"attacher detaches " + name, true, func(s *state) {
				s.w.Unpublish(v, machine)
				s.w.Serve(world.Request{Do: world.MarkDetached, Key: key, UID: a.UID})
			}})
		case !a.Attached:
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
			list = append(list, move{"user deletes " + uid, false, func(s *state) { s.delete(uid) }})
		}
		if p.Node != "" || p.Phase != ledger.PodLive {
			continue
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
			list = append(list, move{fmt.Sprintf("somebody binds %s to %s", p.UID, node(n)), false, func(s *state) { s.bind(p.UID, node(n)) }})
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
		s.leader != nil && slices.ContainsFunc(s.leader.ops, func(o op) bool {
			return o.request.Do == world.CreateAttachment && o.step.Node == node(n)
		})
}

// fresh is a ledger that has just listed everything.
func (s *state) fresh() ledger.Snapshot {
	l := ledger.New()
	for _, k := range world.AllKinds() {
		for _, e := range s.w.List(k) {
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

func (s *state) delete(uid string) {
	p, _ := s.w.Pod(uid)
	if p.Node == "" {
		s.w.Drop(world.Pods, uid)
		return
	}
	p.Phase = ledger.PodTerminating
	s.w.Put(p)
}
