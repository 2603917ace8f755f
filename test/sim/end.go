// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

func start() time.Time { return world.Start() }

func (s *Sim) judgeEnd() {
	leader := s.leader()
	if leader == nil {
		s.fault("nobody leads")
		return
	}
	s.judgeDecisions(leader)
	s.judgePods(leader)
	s.judgeLeaks(leader)
	s.judgeDetached()
	s.judgeTickets(leader)
	s.judgeUnknown(leader)
	s.judgeTelling(leader)
	s.judgeBooks()
	s.judgeHolds(leader)
	s.judgeAgreement(leader)
}

// If a volume is unknown to the leader at a node, and a VolumeAttachment permits its detach, the VolumeHold
// tells the next leader, with the boot. Without a VolumeHold, the VolumeAttachment's note does.
func (s *Sim) judgeTelling(c *controller) {
	if s.config.Cooperative || len(s.w.Refusals) > 0 || len(s.faults.vanished) > 0 {
		return
	}
	known := c.observer.snapshot()
	for n := range known.Nodes() {
		for _, v := range n.At() {
			h, held := s.w.Hold(v)
			f, _ := h.Fence(n.Name)
			a, exists := s.w.Attachment(ledger.AttachmentName(v, n.Name))
			if !held {
				h.Node, h.BootID = n.Name, a.Note.Boot.BootID
			}
			known := known.Volume(v)
			for _, b := range known.OnNode(n.Name).SawUnknown() {
				if b.BootID != "" && exists && !a.Deleting && f.BootID != b.BootID && f.SystemUUID != ledger.OtherMachine && (h.Node != n.Name || h.BootID != b.BootID) {
					s.fault("%s does not believe %s about %s, and no hold says so to whoever leads next", c.name, n.Name, v)
				}
			}
		}
	}
}

func (s *Sim) judgeUnknown(leader *controller) {
	var observers []*observer
	for _, c := range s.controllers {
		observers = append(observers, c.observer)
	}
	for _, k := range s.schedulers {
		observers = append(observers, k.observer)
	}
	for _, o := range observers {
		known := o.snapshot()
		for n := range known.Nodes() {
			for _, v := range n.At() {
				at := world.At{Volume: v, Node: n.Name}
				if n.Exists && len(known.Volume(v).OnNode(n.Name).SawUnknown()) > 0 && !v.NoAttach() && !s.w.MayBeUnknown(at) {
					s.fault("%s does not believe %s about %s, which is not there, nor was when its Node was deleted or made", o.caller.name, n.Name, v)
				}
			}
		}
	}
}

func (s *Sim) leader() *controller {
	for _, c := range s.controllers {
		if c.awake() && c.role == leading && c.leads() {
			return c
		}
	}
	return nil
}

func (s *Sim) fresh() ledger.Snapshot {
	l := ledger.New()
	for _, k := range append(world.AllKinds(), world.NodeWords) {
		for _, e := range s.w.List(k) {
			l.Apply(s.Now(), e)
		}
	}
	for _, n := range s.nodeNames() {
		if a := s.w.Serve(world.Request{Do: world.GetObject, Kind: world.Leases, Key: string(n)}); a.Code == world.OK {
			l.Apply(s.Now(), a.Facts[0])
		}
	}
	return l.Snapshot()
}

func (s *Sim) judgeDecisions(c *controller) {
	s.tell(c, c.arbiter.Audit(c.observer.snapshot(), s.Now()))
	if len(s.w.Refusals) > 0 {
		return // it has tried
	}
	for _, v := range c.arbiter.AuditAtRest(c.observer.snapshot(), s.Now()) {
		s.fault("left undone: %s", v)
	}
	for _, v := range c.arbiter.AuditAtRest(s.fresh(), s.Now()) {
		if s.unknown(c, v.Volume, "") || s.vanished(v.Volume) || s.remembered(c, v.Volume) || s.replaced(c, v.Volume) || provedAbsent(c, v.Volume) {
			// A new leader would not know some facts: an unknown volume (docs/internals/invariants.md, I3);
			// a user by a lost claim or no object; the machine's name in the first attach; or a read of
			// volumesAttached without the volume.
			continue
		}
		s.fault("left undone, and not known to be: %s", v)
	}
}

// The empty name is any node. A boot since the rest began ends it, with exceptions
// (docs/internals/simulation.md, known and open).
func (s *Sim) unknown(c *controller, id ledger.VolumeID, n ledger.NodeName) bool {
	known := c.observer.snapshot()
	v := known.Volume(id)
	return v != nil && slices.ContainsFunc(v.OnNodes, func(p ledger.VolumeOnNode) bool {
		boots := known.Unknown(v, &p)
		ended := slices.Contains(s.rebooted, p.Node) && !slices.ContainsFunc(boots, func(b ledger.Boot) bool { return b.SystemUUID == ledger.OtherMachine })
		return (n == "" || p.Node == n) && !ended && len(boots) > 0
	})
}

// remembered: the leader counts a use only because an earlier Node said so. A new leader knows no use, and
// drops the hold.
func (s *Sim) remembered(c *controller, id ledger.VolumeID) bool {
	v, fresh := c.observer.snapshot().Volume(id), s.fresh().Volume(id)
	return v != nil && fresh != nil && slices.ContainsFunc(v.OnNodes, func(p ledger.VolumeOnNode) bool {
		_, fenced := v.Hold.Fence(p.Node)
		return fenced && p.InUse && !p.HasAttachments() && fresh.OnNode(p.Node) == nil
	})
}

// Each pod runs, or names an existing cause for its wait.
func (s *Sim) judgePods(c *controller) {
	f := s.fresh()
	for _, key := range s.w.Keys(world.Pods) {
		p, _ := s.w.Pod(key)
		k := s.kubeletOf(p.Node)
		switch {
		case p.Phase == ledger.PodFinished:
		case p.Node == "":
			s.judgePending(c, f, p)
		case k == nil || !k.working():
		case p.Phase == ledger.PodTerminating:
			s.fault("pod %s at %s does not end", key, p.Node)
		case !k.machine.Containers[key]:
			s.judgeWaiting(c, f, p)
		}
	}
}

func (s *Sim) vanished(v ledger.VolumeID) bool {
	return slices.ContainsFunc(s.faults.vanished, func(name string) bool {
		gone, vanished := s.w.Vanished(name)
		return vanished && gone == v
	})
}

func (s *Sim) kubeletOf(n ledger.NodeName) *kubelet {
	i := slices.IndexFunc(s.kubelets, func(k *kubelet) bool { return k.node == n })
	if i < 0 {
		return nil
	}
	return s.kubelets[i]
}

// A pod without a node is told why, and no node would take it.
func (s *Sim) judgePending(c *controller, f ledger.Snapshot, p ledger.Pod) {
	r := rules.PodRequest(f, &p)
	volumes, _ := s.w.VolumesOf(p)
	for _, n := range s.nodeNames() {
		node := f.Node(n)
		if past(s.scheduler[p.UID]) || node == nil || node.Ready != ledger.ReadyTrue || node.OutOfService {
			continue
		}
		if s.mayRun(c, p, n) {
			s.fault("pod %s waits to be placed, and nothing is in its way at %s", p.UID, n)
		}
		v := c.arbiter.Fit(f, r, n, s.Now())
		if v.Allowed() && len(s.w.Refusals) == 0 && !slices.ContainsFunc(volumes, s.vanished) && !s.lostAt(n) { // others know its earlier users
			s.fault("pod %s waits to be placed, and %s would take it", p.UID, n)
		} else if !v.Allowed() && len(v.Reasons) == 0 {
			s.fault("pod %s is refused at %s without a reason", p.UID, n)
		}
	}
}

// lostAt: processes count a slot for a vanished PersistentVolume if they saw it.
func (s *Sim) lostAt(n ledger.NodeName) bool {
	return slices.ContainsFunc(s.w.PodsAt(n), func(p ledger.Pod) bool {
		return p.Phase != ledger.PodFinished && slices.ContainsFunc(s.w.Judge.UsedBy(s.w, p), s.vanished)
	})
}

// A bound pod that does not run waits for a living user's volume, or for a volume that no controller can
// keep safe.
func (s *Sim) judgeWaiting(c *controller, f ledger.Snapshot, p ledger.Pod) {
	volumes, complete := s.w.VolumesOf(p)
	excused := !complete
	for _, v := range volumes {
		excused = excused || s.full(v, p.Node, volumes) || s.keptDetached(v) || s.w.Disks.Lied[v] || s.replaced(c, v) || s.stranded(v) || s.w.Exclusive(v) && s.unknown(c, v, "") && !s.looked(c, v) || s.w.RefusedFor(v, p.Node) || s.w.Exclusive(v) && (s.claimedElsewhere(v, p) || s.strayElsewhere(v, p.Node))
	}
	if !excused {
		s.fault("pod %s at %s does not run, and nobody is in its way", p.UID, p.Node)
	}
	for _, need := range rules.PodRequest(f, &p).Needs {
		if v := c.arbiter.Explain(f, need, p.Node, s.Now()); !v.Allowed() && len(v.Reasons) == 0 {
			s.fault("pod %s at %s is not told why it waits for %s", p.UID, p.Node, need.Name)
		}
	}
}

// Parallel schedulers and tickets do not know of each other, and a limit is known only after its driver has
// registered.
func (s *Sim) full(v ledger.VolumeID, n ledger.NodeName, volumes []ledger.VolumeID) bool {
	if v.NoAttach() {
		return false
	}
	taken, own := int32(0), map[string]bool{}
	for _, mine := range volumes {
		if mine.Driver == v.Driver && !own[ledger.AttachmentName(mine, n)] {
			own[ledger.AttachmentName(mine, n)] = true
			taken++
		}
	}
	for _, key := range s.w.Keys(world.Attachments) {
		if a, _ := s.w.Attachment(key); a.Node == n && a.Driver == v.Driver && !own[a.Name] {
			taken++
		}
	}
	node, _ := s.w.Drivers(n)
	return slices.ContainsFunc(node.Drivers, func(d ledger.DriverOnNode) bool {
		return d.Name == v.Driver && d.Limit != ledger.NoLimit && taken > d.Limit
	})
}

// looked: moorage-node's look would make the volume known. If the hold grants another machine of the name,
// it is not asked (docs/internals/simulation.md, known and open).
func (s *Sim) looked(c *controller, v ledger.VolumeID) bool {
	if s.agents == nil || v.NoAttach() {
		return false
	}
	for _, n := range s.nodeNames() {
		if !s.unknown(c, v, n) {
			continue
		}
		k, node := s.kubeletOf(n), c.observer.snapshot().Node(n)
		if h, _ := s.w.Hold(v); h.Node == n && h.SystemUUID != node.SystemUUID {
			return false
		}
		a := &k.machine.Agent
		if !k.working() || !a.Runs || a.Blind || len(a.Unread)+len(a.Torn) > 0 || !hereAlone(c, v, n) || k.machine.Uses(v) || slices.Contains(k.machine.Left, v) || s.usedAt(v, n) {
			return false
		}
	}
	return true
}

// hereAlone: the volume is unknown in the node's present boot only.
func hereAlone(c *controller, id ledger.VolumeID, n ledger.NodeName) bool {
	v := c.observer.snapshot().Volume(id)
	return c.observer.snapshot().IsUnknownHere(v, v.OnNode(n))
}

func (s *Sim) keptDetached(v ledger.VolumeID) bool {
	for _, key := range s.w.Keys(world.Tickets) {
		if t, _ := s.w.Ticket(world.TicketKey(key)); t.Node == ledger.Detached && t.Phase == ledger.TicketGranted && slices.Contains(s.w.TicketVolumes(t), v) {
			return true
		}
	}
	return false
}

func (s *Sim) judgeDetached() {
	for _, key := range s.w.Keys(world.Tickets) {
		t, _ := s.w.Ticket(world.TicketKey(key))
		if t.Node == ledger.Detached && t.Phase == ledger.TicketGranted && t.SatisfiedSince == 0 && len(s.w.Refusals) == 0 && !slices.ContainsFunc(s.w.TicketVolumes(t), s.somewhere) {
			s.fault("ticket %s is not told that its volumes are attached nowhere", key)
		}
	}
}

func (s *Sim) somewhere(v ledger.VolumeID) bool {
	for _, key := range s.w.Keys(world.Attachments) {
		if a, _ := s.w.Attachment(key); ledger.AttachmentName(v, a.Node) == a.Name {
			return true
		}
	}
	for _, n := range s.nodeNames() {
		if node, exists := s.w.Node(n); !exists || slices.Contains(node.InUse, v) || slices.Contains(node.Reported, v) {
			return true
		}
	}
	return len(s.w.Disks.At[v]) > 0 || s.vanished(v)
}

// Pods that wait at two nodes don't block each other. A volume at no node goes to the first pod.
func (s *Sim) claimedElsewhere(v ledger.VolumeID, p ledger.Pod) bool {
	for _, key := range s.w.Keys(world.Pods) {
		other, _ := s.w.Pod(key)
		list := s.w.Judge.UsedBy(s.w, other)
		claims := slices.Contains(list, v) || s.lostBy(other, v)
		if other.Node != "" && other.Node != p.Node && other.Phase != ledger.PodFinished && claims && (s.shownAt(v, other.Node) || world.ComesFirst(other, p) && !s.shownAt(v, p.Node)) {
			return true
		}
	}
	for _, key := range s.w.Keys(world.Tickets) {
		if t, _ := s.w.Ticket(world.TicketKey(key)); t.Node != p.Node && t.Phase == ledger.TicketGranted && slices.Contains(s.w.TicketVolumes(t), v) {
			return true
		}
	}
	return false
}

// shownAt ignores volumesInUse: a pod may wait for the volume there.
func (s *Sim) shownAt(v ledger.VolumeID, n ledger.NodeName) bool {
	h, _ := s.w.Hold(v)
	_, exists := s.w.Attachment(ledger.AttachmentName(v, n))
	node, _ := s.w.Node(n)
	has := func(id string) bool { return s.w.Machines[id].Node == n }
	k := s.kubeletOf(n)
	return h.Node == n || exists || slices.Contains(node.Reported, v) || k != nil && k.machine.Uses(v) || slices.ContainsFunc(s.w.Disks.At[v], has)
}

// Only kube-controller-manager's next start detaches the volume; meanwhile moorage-attacher attaches it
// nowhere else.
func (s *Sim) strayElsewhere(v ledger.VolumeID, n ledger.NodeName) bool {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		if at, _ := s.w.Source(a); at == v && a.Node != n && s.strays[a.UID] {
			return true
		}
	}
	return false
}

// replaced: only a person can detach a volume from a machine that another of its name has replaced.
func (s *Sim) replaced(c *controller, v ledger.VolumeID) bool {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		at, _ := s.w.Source(a)
		if at == v && a.NodeID != "" && a.NodeID != s.nodeID(a.Node) {
			return true
		}
		if m := s.w.Machines[a.NodeID]; at == v && a.Attached && m != nil && s.w.AtReplaced(m, v) {
			return true // an attacher that had called for the earlier machine marked it late
		}
	}
	known := c.observer.snapshot().Volume(v)
	return known != nil && slices.ContainsFunc(known.OnNodes, func(p ledger.VolumeOnNode) bool {
		own := p.Own()
		return own != nil && own.NodeID != "" && own.NodeID != s.nodeID(p.Node) && s.stamped(own.UID, own.NodeID)
	})
}

func (s *Sim) stamped(uid, nodeID string) bool {
	return slices.ContainsFunc(s.logs[world.Attachments], func(c world.Change) bool {
		a, ok := c.Fact.(ledger.Attachment)
		return ok && a.UID == uid && a.NodeID == nodeID
	})
}

// provedAbsent: the hold's node does not report the volume, which has no VolumeAttachments.
func provedAbsent(c *controller, v ledger.VolumeID) bool {
	known := c.observer.snapshot().Volume(v)
	return v.NoAttach() && known != nil && slices.ContainsFunc(known.OnNodes, func(p ledger.VolumeOnNode) bool {
		return p.Held && !p.Reported && p.Proof.Stage != ledger.ProofNone
	})
}

func (s *Sim) judgeLeaks(c *controller) {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		v, ok := s.w.Source(a)
		if ok && !s.strays[a.UID] && !s.usedAt(v, a.Node) && !s.triedInVain(v) && !s.replaced(c, v) && !s.w.RefusedFor(v, a.Node) && !s.unknown(c, v, a.Node) && s.reachable(a.Node) {
			s.fault("the VolumeAttachment of %s at %s is left over", v, a.Node)
		}
	}
	for _, n := range s.nodeNames() {
		node, _ := s.w.Node(n)
		for _, v := range node.Reported {
			if v.NoAttach() && !s.usedAt(v, n) && !s.triedInVain(v) && !s.vanished(v) && !s.w.RefusedFor(v, n) && !s.unknown(c, v, n) && s.reachable(n) {
				s.fault("volumesAttached of %s names %s, which nobody uses there", n, v)
			}
		}
	}
	for v, at := range s.w.Disks.At {
		for _, id := range at {
			m := s.w.Machines[id]
			if m.Replaced {
				continue // an attacher finds volumes by their node's name
			}
			if _, exists := s.w.Attachment(ledger.AttachmentName(v, m.Node)); !exists && !s.w.Disks.Lied[v] {
				s.fault("%s is attached to %s, and no VolumeAttachment says so", v, strings.ReplaceAll(id, "#", " machine "))
			}
		}
	}
}

func (s *Sim) usedAt(v ledger.VolumeID, n ledger.NodeName) bool {
	for _, p := range s.w.PodsAt(n) {
		if p.Phase != ledger.PodFinished && (slices.Contains(s.w.Judge.UsedBy(s.w, p), v) || s.lostBy(p, v)) {
			return true
		}
	}
	for _, key := range s.w.Keys(world.Tickets) {
		if t, _ := s.w.Ticket(world.TicketKey(key)); t.Node == n && slices.Contains(s.w.TicketVolumes(t), v) {
			return true
		}
	}
	return false
}

// A ticket whose status is refused permanently is granted again and again.
func (s *Sim) triedInVain(v ledger.VolumeID) bool {
	return len(s.w.Refusals) > 0 && slices.ContainsFunc(s.w.Keys(world.Tickets), func(key string) bool {
		t, _ := s.w.Ticket(world.TicketKey(key))
		return t.Phase == ledger.TicketPending && s.w.Refuses(world.RefusedTickets, key) && slices.Contains(s.w.TicketVolumes(t), v)
	})
}

// lostBy: a leader that saw the vanishing late has counted the pod as the volume's user.
func (s *Sim) lostBy(p ledger.Pod, v ledger.VolumeID) bool {
	return slices.ContainsFunc(p.Volumes, func(pv ledger.PodVolume) bool {
		lost, ok := s.w.LostBy(ledger.ClaimKey{Namespace: p.Namespace, Name: pv.Claim})
		return ok && lost == v
	})
}

func (s *Sim) reachable(n ledger.NodeName) bool {
	k := s.kubeletOf(n)
	return k != nil && k.working()
}
