// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// mayRun uses no rule of the core. If unsure it is false, also after a PersistentVolume has vanished, since
// others know its earlier users.
func (s *Sim) mayRun(c *controller, p ledger.Pod, n ledger.NodeName) bool {
	volumes, complete := s.w.VolumesOf(p)
	node, exists := s.w.Node(n)
	if !complete || !exists || !s.reachable(n) || node.Draining || len(s.w.Refusals) > 0 || len(s.faults.vanished) > 0 {
		return false
	}
	for _, v := range volumes {
		unsure := s.w.Disks.Lied[v] || s.unknown(c, v, "") || s.replaced(c, v) || s.ticketed(v)
		if unsure || s.w.Exclusive(v) && (s.inUseBeside(v, p) || s.shownBeside(v, n)) {
			return false
		}
	}
	return s.w.HasRoom(n, volumes)
}

func (s *Sim) ticketed(v ledger.VolumeID) bool {
	for _, key := range s.w.Keys(world.Tickets) {
		if t, _ := s.w.Ticket(world.TicketKey(key)); slices.Contains(s.w.TicketVolumes(t), v) {
			return true
		}
	}
	return false
}

func (s *Sim) inUseBeside(v ledger.VolumeID, p ledger.Pod) bool {
	for _, key := range s.w.Keys(world.Pods) {
		other, _ := s.w.Pod(key)
		if other.UID != p.UID && other.Node != "" && other.Phase != ledger.PodFinished && slices.Contains(s.w.Judge.UsedBy(s.w, other), v) {
			return true
		}
	}
	for _, key := range s.w.Keys(world.Tickets) {
		t, _ := s.w.Ticket(world.TicketKey(key))
		if t.Phase == ledger.TicketGranted && slices.Contains(s.w.TicketVolumes(t), v) {
			return true
		}
	}
	return false
}

func (s *Sim) shownBeside(v ledger.VolumeID, n ledger.NodeName) bool {
	return slices.ContainsFunc(s.nodeNames(), func(other ledger.NodeName) bool { return other != n && s.shownAt(v, other) })
}
