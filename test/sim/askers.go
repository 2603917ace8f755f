// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// A ticket is told as soon as it has its volumes, and never waits for a volume that it has. The check uses
// no rule of the core; if unsure, it passes.
func (s *Sim) judgeTickets(c *controller) {
	if len(s.w.Refusals) > 0 || len(s.faults.vanished) > 0 {
		return
	}
	for _, key := range s.w.Keys(world.Tickets) {
		t, _ := s.w.Ticket(world.TicketKey(key))
		volumes := s.w.TicketVolumes(t)
		if t.Type == ledger.TypeLiveMigration || t.Parameters != "" || len(volumes) < len(t.Volumes) || slices.ContainsFunc(volumes, func(v ledger.VolumeID) bool { return s.unsure(c, t, v) }) {
			continue
		}
		switch t.Phase {
		case ledger.TicketGranted:
			has := func(v ledger.VolumeID) bool { return s.has(t, v) }
			if s.config.Asked && !s.config.Cooperative && t.SatisfiedSince == 0 && s.reachable(t.Node) && !slices.ContainsFunc(volumes, func(v ledger.VolumeID) bool { return !has(v) }) {
				s.fault("ticket %s is not told that it has its volumes at %s", t.ID.Name, t.Node)
			}
		case ledger.TicketPending:
			for _, n := range s.placesOf(t) {
				if s.mayHave(t, volumes, n) {
					s.fault("ticket %s waits, and nothing is in its way at %s", t.ID.Name, n)
				}
			}
		}
	}
}

func (s *Sim) placesOf(t ledger.Ticket) []ledger.NodeName {
	if t.Wherever {
		return s.nodeNames()
	}
	return []ledger.NodeName{t.Node}
}

// unsure: a process may know more of a volume than the API's objects show, or another ticket asks for it.
func (s *Sim) unsure(c *controller, t ledger.Ticket, v ledger.VolumeID) bool {
	return s.w.Disks.Lied[v] || s.unknown(c, v, "") || s.replaced(c, v) || slices.ContainsFunc(s.w.Keys(world.Tickets), func(key string) bool {
		other, _ := s.w.Ticket(world.TicketKey(key))
		return other.ID != t.ID && slices.Contains(s.w.TicketVolumes(other), v)
	})
}

func (s *Sim) has(t ledger.Ticket, v ledger.VolumeID) bool {
	node, _ := s.w.Node(t.Node)
	h, _ := s.w.Hold(v)
	a, exists := s.w.Attachment(ledger.AttachmentName(v, t.Node))
	return slices.Contains(node.Reported, v) && (v.NoAttach() || exists && a.Attached && !a.Deleting) && (!s.w.Exclusive(v) || h.Node == t.Node)
}

func (s *Sim) mayHave(t ledger.Ticket, volumes []ledger.VolumeID, n ledger.NodeName) bool {
	node, _ := s.w.Node(n)
	if n != ledger.Detached && (!s.reachable(n) || node.Draining || node.OutOfService || !s.w.HasRoom(n, volumes)) {
		return false
	}
	for _, v := range volumes {
		if n == ledger.Detached && s.somewhere(v) || s.w.Exclusive(v) && s.shownBeside(v, n) {
			return false
		}
		for _, key := range s.w.Keys(world.Pods) {
			p, _ := s.w.Pod(key)
			if uses := p.Phase != ledger.PodFinished && slices.Contains(s.w.Judge.UsedBy(s.w, p), v); uses && (s.w.Exclusive(v) || n == ledger.Detached) {
				return false
			}
		}
	}
	return true
}
