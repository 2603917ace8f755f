// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// broken is the rule that was broken on the way to a state.
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

// listed is what the judge has listed that is a fault in this world.
func (s *state) listed() string {
	j := &s.w.Judge
	switch {
	case s.config.Strict == ByTime && len(j.ByTime) > 0:
		return "by time alone a volume was taken from a machine that lives: " + j.ByTime[0]
	case s.config.Strict == Overtaken && len(j.Overtaken) > 0:
		return "a volume was detached by force from a node that is Ready again: " + j.Overtaken[0]
	case s.config.Strict == Forgotten && len(j.Forgotten) > 0:
		return "the hold of a volume was deleted whose disk is back: " + j.Forgotten[0]
	}
	return ""
}

// unsettled says what is wrong with a state in which nothing moves any more.
func (s *state) unsettled() string {
	if s.leader == nil {
		return "nobody leads"
	}
	for _, v := range (rules.Arbiter{Hurried: true}).AuditAtRest(s.leader.ledger.Snapshot(), s.w.Now) {
		return "left undone: " + v.String()
	}
	if s.config.Vanished == 0 && !s.unheard() { // what began after a claim was lost does not know whose it was
		for _, v := range (rules.Arbiter{Hurried: true}).AuditAtRest(s.fresh(), s.w.Now) {
			// A new leader would not know of the doubt, nor that the attachment went lately.
			if !s.doubted(v.Volume, v.Node) && !s.unexplained(v.Volume) {
				return "left undone, and not known to be: " + v.String()
			}
		}
	}
	for i, claims := range s.config.Pods {
		p, exists := s.w.Pod(pod(i + 1))
		switch {
		case !exists:
		case p.Phase == ledger.PodTerminating && s.stuck > 0:
			// Its volume can't be unmounted.
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

// doubted says whether the leader does not believe a node about a volume, which stays
// there until the machine boots anew, or moorage-node has looked. Any node: the empty name.
func (s *state) doubted(id ledger.VolumeID, n ledger.NodeName) bool {
	known := s.leader.ledger.Snapshot()
	v := known.Volume(id)
	return v != nil && slices.ContainsFunc(v.NodeVolumes, func(p ledger.NodeVolume) bool {
		return (n == "" || p.Node == n) && rules.Doubted(known, v, &p)
	})
}

// unexplained says whether a kubelet lists a volume whose attachment the leader has seen
// go: it tells that after a minute, and no time passes here. A new leader tells it at once.
func (s *state) unexplained(id ledger.VolumeID) bool {
	known := s.leader.ledger.Snapshot()
	v := known.Volume(id)
	return v != nil && slices.ContainsFunc(v.NodeVolumes, func(p ledger.NodeVolume) bool {
		_, seen := v.Left(p.Node)
		return seen && rules.Unexplained(known, &p)
	})
}

// waits says whether a bound pod waits for nobody. It waits for no boot where moorage-node answers.
func (s *state) waits(p ledger.Pod, claims []int) string {
	m := s.machine(nodeIndex(p.Node))
	for _, claim := range claims {
		v := volume(claim)
		if !slices.Contains(m.Mounts[v], p.UID) && m.Powered && !s.elsewhere(claim, p) && !s.full(claim, p) && !s.askedElsewhere(claim, p.Node) && !s.stuckAt(v) && (!s.doubted(v, "") || s.config.Agents) && !s.unheard() && s.complete(p) {
			return p.UID + " waits for " + v.Handle + ", and nobody is in its way"
		}
	}
	return ""
}

// elsewhere says whether somebody who lives has a volume at another node, or is to get it. Two pods that wait at two
// nodes are not in each other's way.
func (s *state) elsewhere(claim int, p ledger.Pod) bool {
	for i, claims := range s.config.Pods {
		if !slices.Contains(claims, claim) {
			continue
		}
		other, exists := s.w.Pod(pod(i + 1))
		if exists && other.Node != "" && other.Node != p.Node && s.shownAt(claim, other.Node) {
			return true
		}
	}
	return false
}

// full says whether the other volumes at a pod's node have all its slots: several that bind pods there, or grant
// tickets, do not know of each other. One scheduler that places all pods takes no node past its limit.
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

// shownAt says whether a volume is at a node, or is to be, as its hold says, a VolumeAttachment or volumesAttached, or
// the machine has it mounted.
func (s *state) shownAt(claim int, name ledger.NodeName) bool {
	v, n := volume(claim), nodeIndex(name)
	h, _ := s.w.Hold(v)
	return h.Node == name || s.attachedAt(claim, n) || s.machine(n).Uses(v)
}

// askedElsewhere says whether a ticket that a user has written has a volume at another node, or keeps
// it from every node.
func (s *state) askedElsewhere(claim int, n ledger.NodeName) bool {
	for i, ask := range s.config.Asks {
		if t, exists := s.w.Ticket(askID(i)); exists && ask.Volume == claim && t.Phase == ledger.TicketGranted && t.Node != n {
			return true
		}
	}
	return false
}

// complete says whether all claims of a pod lead somewhere.
func (s *state) complete(p ledger.Pod) bool {
	_, complete := s.w.VolumesOf(p)
	return complete
}

// leaks says what is left over.
func (s *state) leaks() string {
	for n := 1; n <= nodes; n++ {
		for i := range s.config.Access {
			if s.attachedAt(i+1, n) && !s.usedAt(i+1, node(n)) && !s.stuckAt(volume(i+1)) && !s.doubted(volume(i+1), node(n)) && !s.unheard() {
				return "the attachment of " + volume(i+1).Handle + " at " + string(node(n)) + " is left over"
			}
		}
	}
	return ""
}

// attachedAt says whether a volume has a VolumeAttachment at a node, or is in its volumesAttached without
// needing one.
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
