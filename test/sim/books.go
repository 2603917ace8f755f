// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// A process that grants, or proposes nodes, counts exactly the slots of the API's objects.
func (s *Sim) judgeBooks() {
	for _, c := range s.controllers {
		s.judgeBooksOf(c.observer)
	}
	for _, k := range s.schedulers {
		s.judgeBooksOf(k.observer)
	}
}

func (s *Sim) judgeBooksOf(o *observer) {
	if !o.knowsAll() {
		return
	}
	known := o.snapshot()
	for _, n := range s.nodeNames() {
		if !s.reachable(n) {
			continue // an earlier Node may have reported it, without a contradiction
		}
		node, least, most := known.Node(n), int32(0), int32(0)
		if node == nil {
			node = &ledger.Node{}
		}
		for _, v := range node.At() {
			switch p := known.Volume(v).OnNode(n); {
			case s.bindsAt(v, n) || s.asksAt(v, n) || p.MayBeInUse() && !p.InUse || s.w.Disks.Lied[v] || s.vanished(v): // unknown volumes are checked elsewhere
				most += slotOf(v)
			case p.TakesSlot() && !v.NoAttach(): // these take no slot; judgeAgreement checks whether they block
				s.fault("%s counts %s as one of %s, where nothing has it, nor asks for it", o.caller.name, v, n)
			}
		}
		for _, v := range s.w.Volumes() {
			if !s.bindsAt(v, n) {
				continue
			}
			if least += slotOf(v); !known.Volume(v).OnNode(n).TakesSlot() {
				s.fault("%s does not count %s as one of %s, where it is", o.caller.name, v, n)
			}
		}
		if taken := node.Driver(driver).Taken(); taken < least || taken > most {
			s.fault("%s counts %d slots as taken at %s, where there are %d to %d", o.caller.name, taken, n, least, most)
		}
	}
}

func slotOf(v ledger.VolumeID) int32 {
	if v.Driver == driver {
		return 1
	}
	return 0
}

func (s *Sim) bindsAt(v ledger.VolumeID, n ledger.NodeName) bool {
	for _, p := range s.w.PodsAt(n) {
		if volumes, _ := s.w.VolumesOf(p); p.Phase != ledger.PodFinished && slices.Contains(volumes, v) {
			return true
		}
	}
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		if at, there := s.w.Source(a); there && at == v && a.Node == n {
			return true
		}
	}
	for _, key := range s.w.Keys(world.Tickets) {
		if t, _ := s.w.Ticket(world.TicketKey(key)); t.Node == n && t.Phase == ledger.TicketGranted && slices.Contains(s.w.TicketVolumes(t), v) {
			return true
		}
	}
	node, _ := s.w.Node(n)
	h, _ := s.w.Hold(v)
	return slices.Contains(node.Reported, v) || h.Node == n && h.Stays
}

func (s *Sim) asksAt(v ledger.VolumeID, n ledger.NodeName) bool {
	node, _ := s.w.Node(n)
	h, _ := s.w.Hold(v)
	if slices.Contains(node.InUse, v) || v.NoAttach() && h.Node == n || s.usedAt(v, n) {
		return true
	}
	if !v.IsReal() && !v.IsClaim() { // of a VolumeAttachment with a PersistentVolume that the counter has not seen
		return slices.ContainsFunc(s.w.Keys(world.Attachments), func(key string) bool {
			a, _ := s.w.Attachment(key)
			_, there := s.w.Source(a)
			return a.Node == n && !there
		})
	}
	unbound := func(claim string) bool {
		c, _ := s.w.Get(world.Claims, ledger.ClaimKey{Namespace: namespace, Name: claim}.String()).(ledger.Claim)
		return v == ledger.UnboundClaim(driver, c.UID)
	}
	return slices.ContainsFunc(s.w.PodsAt(n), func(p ledger.Pod) bool {
		return p.Phase != ledger.PodFinished && slices.ContainsFunc(p.Volumes, func(pv ledger.PodVolume) bool { return unbound(pv.Claim) })
	}) || slices.ContainsFunc(s.w.Keys(world.Tickets), func(key string) bool {
		t, _ := s.w.Ticket(world.TicketKey(key))
		return t.Node == n && slices.ContainsFunc(t.Volumes, func(tv ledger.TicketVolume) bool { return unbound(tv.Claim) })
	})
}

func hasUnknown(known ledger.Snapshot, n ledger.NodeName) bool {
	node := known.Node(n)
	return node != nil && slices.ContainsFunc(node.At(), func(v ledger.VolumeID) bool { return !v.IsReal() && !v.IsClaim() })
}

// All processes agree on a pod's nodes.
func (s *Sim) judgeAgreement(c *controller) {
	leads := c.observer.snapshot()
	for _, k := range s.schedulers {
		o := k.observer
		if !o.knowsAll() {
			continue
		}
		for _, key := range s.w.Keys(world.Claims) {
			claim, _ := s.w.Get(world.Claims, key).(ledger.Claim)
			p := ledger.Pod{UID: "another", Namespace: namespace, Name: "another", Created: s.Now().Unix(), Volumes: []ledger.PodVolume{{Name: "v", Claim: claim.Key.Name}}}
			for _, n := range s.nodeNames() {
				if !s.reachable(n) || hasUnknown(o.snapshot(), n) || hasUnknown(leads, n) {
					continue // not a node for pods; or a process that has watched it longer knows more
				}
				grants := c.arbiter.Fit(leads, rules.PodRequest(leads, &p), n, s.Now())
				proposes := c.arbiter.Fit(o.snapshot(), rules.PodRequest(o.snapshot(), &p), n, s.Now())
				if grants.Allowed() != proposes.Allowed() {
					s.fault("%s would have a pod with %s at %s: %t, by %q; and %s: %t, by %q", o.caller.name, key, n, proposes.Allowed(), proposes.First().Code, c.name, grants.Allowed(), grants.First().Code)
				}
			}
		}
	}
}
