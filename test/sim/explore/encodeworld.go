// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (e *encoder) api(s *state) {
	for i := range s.config.Pods {
		p, exists := s.w.Pod(pod(i + 1))
		e.bool(exists)
		if exists {
			e.pod(p)
			e.bool(s.w.Deleting(p.UID))
		}
		e.byte(byte(s.sent[i]))
	}
	e.asks(s)
	for n := 1; n <= nodes; n++ {
		now, _ := s.w.Node(node(n))
		e.node(now)
		if word, spoken := s.w.Word(node(n)); spoken {
			e.word(&word)
		}
		for i := range s.config.Access {
			a, exists := s.w.Attachment(attachmentName(i+1, n))
			e.bool(exists)
			if exists {
				e.attachment(s, a)
				e.bool(s.w.Judge.Doomed(a.UID))
			}
		}
	}
	if len(s.config.Asks) > 0 { // otherwise there are no grants
		e.past(s)
	}
	for i := range s.config.Access {
		h, exists := s.w.Hold(volume(i + 1))
		e.bool(exists)
		if exists {
			e.hold(volume(i+1), h)
		}
		at, transitions := s.w.Judge.Given(volume(i + 1))
		e.text(string(at))
		e.transitions(i+1, transitions)
	}
}

func (e *encoder) past(s *state) {
	for i := range s.config.Pods {
		e.bool(s.w.Judge.Bound(pod(i + 1)))
	}
	for i := range s.config.Access {
		for n := 1; n <= nodes; n++ {
			at := world.At{Volume: volume(i + 1), Node: node(n)}
			e.bool(s.w.Judge.TakenPast(at))
			e.bool(s.w.Judge.Excuses(s.w.Version(), at))
			for _, kind := range []world.Kind{world.Pods, world.Tickets} {
				for _, object := range s.w.List(kind) {
					e.bool(s.w.Judge.Excuses(world.VersionOf(object), at))
				}
			}
		}
	}
}

func (e *encoder) pod(p ledger.Pod) {
	e.byte(byte(p.Phase))
	e.text(string(p.Node))
	e.version(podObject(p.UID), p.Version)
}

func (e *encoder) ticket(t ledger.Ticket) {
	e.byte(byte(t.Phase))
	e.bool(t.InDoubt, t.Granting, t.SatisfiedSince != 0, t.YieldingSince != 0, t.LetsGo)
	e.text(string(t.Node))
	e.text(t.Reason)
	e.volumes(t.Granted)
	e.byte(byte(t.Epoch))
	e.version(ticketObject(t.ID), t.Version)
	e.uid(ticketObject(t.ID), t.UID)
}

func (e *encoder) node(n ledger.NodeState) {
	e.byte(byte(n.Ready))
	e.bool(n.OutOfService, n.Reporting, n.ReadySince == 0)
	e.fenced(n.Name, n.Fenced)
	e.byte(byte(len(n.CutOff)))
	e.volumes(n.InUse)
	e.volumes(n.Reported)
	if n.Name != "" {
		e.version(nodeObject(n.Name), n.Version)
		e.uid(nodeObject(n.Name), n.UID)
		e.byte(n.BootID[len(n.BootID)-1])
	}
}

func (e *encoder) fenced(n ledger.NodeName, list []ledger.FencedCondition) {
	e.byte(byte(len(list)))
	for _, c := range list {
		e.lease(n, c.Since*1e6)
	}
}

func (e *encoder) attachment(s *state, a ledger.Attachment) {
	e.bool(a.Attached, a.Deleting, a.AttachError.IsZero(), a.DetachError.IsZero())
	e.bool(s.leader != nil && s.leader.memory.Confirmed(a.UID), a.Confirmed && !a.Ours, a.Wanted, a.NodeID == "", a.Stamped)
	e.text(a.PersistentVolume)
	e.note(a.Node, a.Note)
	o := attachmentObject(a.Name)
	e.transitions(volumeAt(o), a.Transitions)
	e.version(o, a.Version)
	e.uid(o, a.UID)
}

func (e *encoder) note(at ledger.NodeName, n ledger.Note) {
	e.text(n.Boot.BootID)
	e.text(n.Pod)
	if n.NodeUID != "" {
		e.uid(nodeObject(at), n.NodeUID)
	}
}

func (e *encoder) hold(v ledger.VolumeID, h ledger.Hold) {
	e.text(string(h.Node))
	e.text(string(h.Next.Node))
	e.text(h.Next.To.UID)
	e.transitions(podIndex(v.Handle), h.Transitions)
	e.text(string(h.State))
	e.text(string(h.Reason))
	e.text(h.Message)
	e.text(h.BootID)
	e.bool(h.Stays)
	e.requesters(h.Requesters)
	e.requesters(h.Waiting)
	e.version(holdObject(v), h.Version)
	if h.Node != "" {
		e.uid(nodeObject(h.Node), h.NodeUID)
	}
	e.byte(byte(len(h.PVs)))
	for _, name := range h.PVs {
		e.text(name)
	}
	e.bool(h.Force != nil)
	if h.Force != nil {
		e.force(*h.Force)
	}
	e.byte(byte(len(h.Fences)))
	for _, f := range h.Fences {
		e.fence(v, f)
	}
}

func (e *encoder) word(w *ledger.NodeWord) {
	e.bool(w != nil)
	if w == nil {
		return
	}
	e.version(theWord+object(nodeIndex(w.Node)), w.Version)
	e.uid(nodeObject(w.Node), w.NodeUID)
	e.byte(w.BootID[len(w.BootID)-1], volumeSet(w.Has))
	e.look(w.Node, w.Look)
	e.look(w.Node, w.Looked)
	e.uid(theWord+object(nodeIndex(w.Node)), w.UID)
	e.byte(volumeSet(w.Mounted), volumeSet(w.Forgotten))
}

func (e *encoder) agent(m *world.Machine) {
	e.bool(m.Agent.Runs)
	e.word(m.Agent.Found)
}

func (e *encoder) look(n ledger.NodeName, number int64) {
	e.ref(theLook+object(nodeIndex(n)), uint64(number))
}

func (e *encoder) force(f ledger.Force) {
	e.text(f.Rule)
	if f.Rule == "" {
		return
	}
	e.text(string(f.Node))
	e.bool(f.Elapsed != 0, f.Since != 0) // no time passes
	e.lease(f.Node, f.Renewed)
	e.uid(nodeObject(f.Node), f.NodeUID)
}

func (e *encoder) fence(v ledger.VolumeID, f ledger.Fence) {
	e.text(string(f.Node))
	e.text(f.Rule)
	e.text(f.BootID)
	e.bool(f.InUse, f.Reported, f.Since != 0)
	e.lease(f.Node, f.Renewed)
	e.uid(nodeObject(f.Node), f.NodeUID)
	e.uid(attachmentObject(ledger.AttachmentName(v, f.Node)), f.Attachment)
}

func (e *encoder) requesters(list []ledger.Requester) {
	e.byte(byte(len(list)))
	for _, r := range list {
		e.text(r.UID)
	}
}

func (e *encoder) truth(s *state) {
	may := s.budget()
	c := s.config
	fragile := may.dead > 0 || s.dead > 0 || c.Silences+c.Broken+c.Remade > 0 // otherwise no rule of force ever counts
	for n := 1; n <= nodes; n++ {
		m := s.machine(n)
		e.byte(byte(m.Boots))
		if e.bool(m.Cut); m.Cut {
			e.text(s.cut[n].BootID)
			now, _ := s.w.Node(m.Node)
			e.look(m.Node, s.cut[n].Look)
			e.bool(s.cut[n].LookSince == now.ReadySince)
			e.uid(theWord+object(n), s.cut[n].LookWord)
			e.uid(nodeObject(m.Node), s.cut[n].NodeUID)
		}
		if c.losesShared() {
			e.bool(s.w.Judge.GoneBefore(m.Node)) // a present mount then counts as lost
		}
		e.agent(m)
		if e.bool(m.Powered); m.Powered {
			e.kubelet(s, m)
		}
		for i := range s.config.Access {
			v := volume(i + 1)
			at := world.At{Volume: v, Node: m.Node}
			ground, attachment := s.w.Judge.Proved(at)
			e.uid(attachmentObject(attachmentName(i+1, n)), attachment)
			e.byte(ground)
			e.bool(slices.Contains(s.w.Disks.At[v], m.ID), fragile && s.w.Judge.Left(at))
			if c.losesShared() {
				e.bool(s.w.Judge.Lost(m, v))
			}
			if len(c.Asks) > 0 {
				e.bool(s.w.Judge.Unheard(at))
			}
			for _, uid := range m.Mounts[v] {
				e.text(uid)
			}
			e.byte(0)
		}
	}
	e.badness(s)
	e.overtakers(s)
	e.byte(byte(may.leaders), byte(may.lost), byte(may.failed), byte(may.restarts), byte(may.dead), byte(s.left))
}

func (e *encoder) overtakers(s *state) {
	each := func(r *world.Request) {
		if r.Since != 0 && r.Do == world.DropAttachment {
			e.bool(s.w.Judge.Overtakes(s.w, world.At{Volume: r.Volume, Node: r.Node}, r.UID, r.Since))
		}
	}
	if s.leader != nil {
		for i := range s.leader.wires {
			each(&s.leader.wires[i].request)
		}
	}
	for _, r := range sortedRequests(s.orphans) {
		each(r)
	}
}

func (e *encoder) kubelet(s *state, m *world.Machine) {
	k, alive := &m.Process, s.alive()
	e.bool(k.Up, k.Linked, k.Synced)
	e.byte(volumeSet(k.Told), volumeSet(k.Attached), volumeSet(k.Uncounted), volumeSet(k.Checked), volumeSet(m.Staged))
	var ended, running uint8
	for _, uid := range k.Ended {
		ended |= bit(podIndex(uid))
	}
	for uid := range m.Containers {
		running |= bit(podIndex(uid))
	}
	e.byte(ended&alive, running)
}

func volumeSet(list []ledger.VolumeID) uint8 {
	var set uint8
	for _, v := range list {
		set |= bit(podIndex(v.Handle))
	}
	return set
}

// The end of pods that neither exist nor are mounted is irrelevant.
func (s *state) alive() uint8 {
	var set uint8
	for i := range s.config.Pods {
		if _, exists := s.w.Pod(pod(i + 1)); exists {
			set |= bit(i + 1)
		}
	}
	for n := 1; n <= nodes; n++ {
		for _, list := range s.machine(n).Mounts {
			for _, uid := range list {
				set |= bit(podIndex(uid))
			}
		}
	}
	return set
}
