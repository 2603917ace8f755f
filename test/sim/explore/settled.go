// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

func (s *state) broken() string {
	if faults := s.w.Judge.Faults; len(faults) > 0 {
		return faults[0]
	}
	if fault := s.listed(); fault != "" {
		return fault
	}
	if fault := s.misled(); fault != "" {
		return fault
	}
	if s.leader == nil {
		return ""
	}
	return s.leader.fault
}

func (s *state) listed() string {
	j := &s.w.Judge
	switch {
	case s.config.Strict == ByTime && len(j.ByTime) > 0:
		return "by time alone a volume was taken from a machine that lives: " + j.ByTime[0]
	case s.config.Strict == Overtaken && len(j.Overtaken) > 0:
		return "a volume was detached by force from a node that is Ready again: " + j.Overtaken[0]
	}
	return ""
}

func (s *state) unsettled() string {
	if s.leader == nil {
		return "nobody leads"
	}
	for _, v := range s.arbiter().AuditAtRest(s.leader.ledger.Snapshot(), s.w.Now) {
		return "left undone: " + v.String()
	}
	if s.config.Vanished == 0 && !s.unheard() { // a process that began after a claim was lost does not know its user
		for _, v := range s.arbiter().AuditAtRest(s.fresh(), s.w.Now) {
			// A new leader would know neither that the volume is unknown nor the attachment's recent end.
			if !s.unknown(v.Volume, v.Node) && !s.unexplained(v.Volume) {
				return "left undone, and not known to be: " + v.String()
			}
		}
	}
	for i, claims := range s.config.Pods {
		p, exists := s.w.Pod(pod(i + 1))
		switch {
		case !exists:
		case p.Phase == ledger.PodTerminating && s.stuck > 0:
		case p.Phase == ledger.PodTerminating:
			return p.UID + " does not end"
		case p.Node != "":
			if fault := s.waits(p, claims); fault != "" {
				return fault
			}
		}
	}
	if fault := s.unanswered(); fault != "" {
		return fault
	}
	return s.leaks()
}

// The empty name is any node.
func (s *state) unknown(id ledger.VolumeID, n ledger.NodeName) bool {
	known := s.leader.ledger.Snapshot()
	v := known.Volume(id)
	return v != nil && slices.ContainsFunc(v.OnNodes, func(p ledger.VolumeOnNode) bool {
		return (n == "" || p.Node == n) && known.IsUnknown(v, &p)
	})
}

// unexplained: a kubelet lists a volume whose attachment has ended. The leader reports that after a minute,
// and no time passes here; a new leader reports it at once.
func (s *state) unexplained(id ledger.VolumeID) bool {
	known := s.leader.ledger.Snapshot()
	v := known.Volume(id)
	return v != nil && slices.ContainsFunc(v.OnNodes, func(p ledger.VolumeOnNode) bool {
		_, seen := v.Left(p.Node)
		return seen && rules.Unexplained(known, &p)
	})
}

func (s *state) waits(p ledger.Pod, claims []int) string {
	m := s.machine(nodeIndex(p.Node))
	for _, claim := range claims {
		v := volume(claim)
		if !slices.Contains(m.Mounts[v], p.UID) && m.Powered && !s.elsewhere(claim, p) && !s.full(claim, p) && !s.askedElsewhere(claim, p.Node) && !s.stuckAt(v) && (!s.unknown(v, "") || s.config.Agents) && !s.unheard() && s.complete(p) {
			return p.UID + " waits for " + v.Handle + ", and nobody is in its way"
		}
	}
	return ""
}

// Two pods that wait at two nodes don't block each other: a volume at no node goes to the pod that comes
// first.
func (s *state) elsewhere(claim int, p ledger.Pod) bool {
	for i, claims := range s.config.Pods {
		if !slices.Contains(claims, claim) {
			continue
		}
		other, exists := s.w.Pod(pod(i + 1))
		if exists && other.Node != "" && other.Node != p.Node && (s.shownAt(claim, other.Node) || world.ComesFirst(other, p) && !s.shownAt(claim, p.Node)) {
			return true
		}
	}
	return false
}

// Schedulers and tickets' granter do not know of each other.
func (s *state) full(claim int, p ledger.Pod) bool {
	if s.w.Judge.Alone && len(s.config.Asks) == 0 {
		return false
	}
	n, taken := nodeIndex(p.Node), 0
	for i := range s.config.Access {
		if i+1 != claim && !volume(i+1).NoAttach() && s.attachedAt(i+1, n) {
			taken++
		}
	}
	return !volume(claim).NoAttach() && taken >= int(s.config.slots(n))
}

func (s *state) shownAt(claim int, name ledger.NodeName) bool {
	v, n := volume(claim), nodeIndex(name)
	h, _ := s.w.Hold(v)
	return h.Node == name || s.attachedAt(claim, n) || s.machine(n).Uses(v)
}

func (s *state) askedElsewhere(claim int, n ledger.NodeName) bool {
	for i, ask := range s.config.Asks {
		if t, exists := s.w.Ticket(askID(i)); exists && ask.Volume == claim && t.Phase == ledger.TicketGranted && t.Node != n {
			return true
		}
	}
	return false
}

func (s *state) complete(p ledger.Pod) bool {
	_, complete := s.w.VolumesOf(p)
	return complete
}

func (s *state) leaks() string {
	for n := 1; n <= nodes; n++ {
		for i := range s.config.Access {
			if s.attachedAt(i+1, n) && !s.usedAt(i+1, node(n)) && !s.stuckAt(volume(i+1)) && !s.unknown(volume(i+1), node(n)) && !s.unheard() {
				return "the attachment of " + volume(i+1).Handle + " at " + string(node(n)) + " is left over"
			}
		}
	}
	return ""
}

func (s *state) attachedAt(claim, n int) bool {
	now, _ := s.w.Node(node(n))
	_, exists := s.w.Attachment(attachmentName(claim, n))
	return exists || volume(claim).NoAttach() && slices.Contains(now.Reported, volume(claim))
}

func (s *state) usedAt(claim int, n ledger.NodeName) bool {
	for i, ask := range s.config.Asks {
		if _, exists := s.w.Ticket(askID(i)); exists && ask.Volume == claim && ask.node() == n {
			return true
		}
	}
	for i, claims := range s.config.Pods {
		p, exists := s.w.Pod(pod(i + 1))
		if exists && p.Node == n && slices.Contains(claims, claim) {
			return true
		}
	}
	return false
}
