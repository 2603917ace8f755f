// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// No VolumeHold is left for a volume that is nowhere. A Free one names no node, and a Held one a node with
// a user. Its waiting users exist.
func (s *Sim) judgeHolds(c *controller) {
	if s.config.Cooperative || len(s.w.Refusals) > 0 {
		return
	}
	for _, key := range s.w.Keys(world.Holds) {
		seen, _ := s.w.Get(world.Holds, key).(ledger.HoldSeen)
		v, h := seen.Volume, seen.Hold
		if s.w.Disks.Lied[v] || s.vanished(v) || s.unknown(c, v, "") || s.replaced(c, v) {
			continue
		}
		switch at := h.Node; {
		case at == "" && (h.State == ledger.HoldHeld || h.State == ledger.HoldDetachPending || h.State == ledger.HoldAttachFailed):
			s.fault("the hold of %s says %s, and names no node", v, h.State)
		case at != "" && h.State == ledger.HoldFree:
			s.fault("the hold of %s says that it is free, and names %s", v, at)
		case h.State == ledger.HoldHeld && at != ledger.Detached && !s.bindsAt(v, at) && !s.asksAt(v, at):
			s.fault("the hold of %s says that %s has it, where nothing is", v, at)
		}
		if !slices.Contains(s.w.Volumes(), v) && !slices.ContainsFunc(s.nodeNames(), func(n ledger.NodeName) bool { return s.bindsAt(v, n) || s.asksAt(v, n) }) {
			s.fault("the hold of %s is left over: the volume is nowhere", v)
		}
		for _, r := range slices.Concat(h.Waiting, h.Requesters) {
			if !s.asks(r, v) {
				s.fault("the hold of %s names %s, who does not ask for it", v, r)
			}
		}
	}
}

func (s *Sim) asks(r ledger.Requester, v ledger.VolumeID) bool {
	if r.Ticket {
		t, exists := s.w.Ticket(ledger.TicketID{Namespace: r.Namespace, Name: r.Name})
		return exists && t.UID == r.UID && slices.Contains(s.w.TicketVolumes(t), v)
	}
	p, exists := s.w.Pod(r.UID)
	return exists && p.Phase != ledger.PodFinished && slices.Contains(s.w.Judge.UsedBy(s.w, p), v)
}
