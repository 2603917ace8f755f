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

// judgeEnd judges a run in which nothing moves any more.
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
	s.judgeDoubts(leader)
	s.judgeTelling(leader)
	s.judgeBooks()
	s.judgeHolds(leader)
	s.judgeAgreement(leader)
}

// judgeTelling: what whoever leads does not believe a node about, while a VolumeAttachment may let somebody detach it, the
// VolumeHold tells whoever leads next: of which boot that is. Nothing else does.
func (s *Sim) judgeTelling(c *controller) {
	if s.config.Cooperative || len(s.w.Refusals) > 0 || len(s.faults.vanished) > 0 {
		return
	}
	for n := range c.observer.snapshot().Nodes() {
		for _, v := range n.At() {
			_, boot := n.DoubtedAt(v)
			h, _ := s.w.Hold(v)
			f, _ := h.Fence(n.Name)
			a, exists := s.w.Attachment(ledger.AttachmentName(v, n.Name))
			if boot != "" && exists && !a.Deleting && f.BootID != boot && (h.Node != n.Name || h.BootID != boot) {
				s.fault("%s does not believe %s about %s, and no hold says so to whoever leads next", c.name, n.Name, v)
			}
		}
	}
}

// judgeDoubts: nobody disbelieves a node about a volume for longer than there is a reason to.
func (s *Sim) judgeDoubts(leader *controller) {
	var observers []*observer
	for _, c := range s.controllers {
		observers = append(observers, c.observer)
	}
	for _, k := range s.schedulers {
		observers = append(observers, k.observer)
	}
	for _, o := range observers {
		for n := range o.snapshot().Nodes() {
			for _, v := range n.At() {
				at := world.At{Volume: v, Node: n.Name}
				late := o != leader.observer && s.w.MayDoubtLate(at)
				if n.Exists && n.Doubts(v) && !v.NoAttach() && !late && !s.w.MayDoubt(at) {
					s.fault("%s does not believe %s about %s, which is not there, nor was when its Node was deleted or made", o.caller.name, n.Name, v)
				}
			}
		}
	}
}

// leader is the controller that leads; nil when none does.
func (s *Sim) leader() *controller {
	for _, c := range s.controllers {
		if c.awake() && c.role == leading && c.leads() {
			return c
		}
	}
	return nil
}

// fresh is a ledger that has just listed everything.
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

// judgeDecisions: whoever leads has nothing left to do, neither on what it
// knows nor on what it would know if it began anew.
func (s *Sim) judgeDecisions(c *controller) {
	s.tell(c, c.arbiter.Audit(c.observer.snapshot(), s.Now()))
	if len(s.w.Refusals) > 0 {
		return // it has tried
	}
	for _, v := range c.arbiter.AuditAtRest(c.observer.snapshot(), s.Now()) {
		s.fault("left undone: %s", v)
	}
	for _, v := range c.arbiter.AuditAtRest(s.fresh(), s.Now()) {
		if s.doubted(c, v.Volume, "") || s.vanished(v.Volume) || s.remembered(c, v.Volume) || s.replaced(c, v.Volume) || provedAbsent(c, v.Volume) {
			// A new leader would not know of the doubt, wherever that is, and take it out of
			// the hold (docs/internals/invariants.md, I3); nor whose the volume was when the
			// claim was lost; nor of a use that no object names any more; nor by which name
			// of the machine a volume was attached first; nor that somebody has read that
			// volumesAttached does not name a volume without VolumeAttachments.
			continue
		}
		s.fault("left undone, and not known to be: %s", v)
	}
}

// doubted says whether whoever leads does not believe a node about a volume, which
// stays there until the machine boots anew. Any node: the empty name. Nothing is in doubt at a node
// whose machine has booted since nothing moved any more, unless it is not the first one of the name, or the ledger does not
// know in which boot the volume may be mounted (docs/internals/simulation.md, known and open).
func (s *Sim) doubted(c *controller, id ledger.VolumeID, n ledger.NodeName) bool {
	known := c.observer.snapshot()
	v := known.Volume(id)
	return v != nil && slices.ContainsFunc(v.NodeVolumes, func(p ledger.NodeVolume) bool {
		machine, _ := known.Node(p.Node).DoubtedAt(id)
		ended := slices.Contains(s.rebooted, p.Node) && machine != ledger.OtherMachine
		return (n == "" || p.Node == n) && !ended && rules.Doubted(known, v, &p)
	})
}

// remembered says whether whoever leads counts a volume as in use at a node only since
// an earlier Node of that name said so. A hold that has it taken from there by force says
// so for as long as the leader does; a new one knows of no use, and drops it.
func (s *Sim) remembered(c *controller, id ledger.VolumeID) bool {
	v, fresh := c.observer.snapshot().Volume(id), s.fresh().Volume(id)
	return v != nil && fresh != nil && slices.ContainsFunc(v.NodeVolumes, func(p ledger.NodeVolume) bool {
		_, fenced := v.Hold.Fence(p.Node)
		return fenced && p.InUse && !p.HasAttachments() && fresh.NodeVolume(p.Node) == nil
	})
}

// judgePods: every pod runs, or says what it waits for; and it does not wait
// for what is there.
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

// vanished says whether a volume's PersistentVolume has vanished, whether it came back
// under another name or not.
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

// judgePending: a pod that no node takes is told why, and a node that would
// take it would have been found: one that would do so by the rules of the core, and one
// at which nothing is in its way.
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
		if v.Allowed() && len(s.w.Refusals) == 0 && !slices.ContainsFunc(volumes, s.vanished) && !s.lostAt(n) { // others know who used it before
			s.fault("pod %s waits to be placed, and %s would take it", p.UID, n)
		} else if !v.Allowed() && len(v.Reasons) == 0 {
			s.fault("pod %s is refused at %s without a reason", p.UID, n)
		}
	}
}

// lostAt says whether a pod at a node uses a volume whose PersistentVolume has vanished: it has a slot
// there for whoever has seen that.
func (s *Sim) lostAt(n ledger.NodeName) bool {
	return slices.ContainsFunc(s.w.PodsAt(n), func(p ledger.Pod) bool {
		return p.Phase != ledger.PodFinished && slices.ContainsFunc(s.w.Judge.UsedBy(s.w, p), s.vanished)
	})
}

// judgeWaiting: a bound pod that does not run waits for a volume that somebody
// else has, who lives; or for one that nobody can keep safe any more.
func (s *Sim) judgeWaiting(c *controller, f ledger.Snapshot, p ledger.Pod) {
	volumes, complete := s.w.VolumesOf(p)
	excused := !complete
	for _, v := range volumes {
		excused = excused || s.full(v, p.Node, volumes) || s.keptDetached(v) || s.w.Disks.Lied[v] || s.replaced(c, v) || s.stranded(v) || s.w.Exclusive(v) && s.doubted(c, v, "") && !s.looked(c, v) || s.w.RefusedFor(v, p.Node) || s.w.Exclusive(v) && (s.claimedElsewhere(v, p) || s.strayElsewhere(v, p.Node))
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

// full says whether a node lacks slots for all of a pod's volumes beside others' volumes, so that the pod gets none:
// schedulers that bind beside each other, and tickets, do not know of each other; and a limit is known only once its
// driver has registered.
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

// looked says whether nothing is in doubt about a volume that a look of moorage-node would not end: it runs at each node in
// doubt, in the boot in doubt, can read all, and the volume is not mounted there. Where the hold has the volume granted for another
// machine of the name, nobody asks it (docs/internals/simulation.md, known and open).
func (s *Sim) looked(c *controller, v ledger.VolumeID) bool {
	if s.agents == nil || v.NoAttach() {
		return false
	}
	for _, n := range s.nodeNames() {
		if !s.doubted(c, v, n) {
			continue
		}
		k, node := s.kubeletOf(n), c.observer.snapshot().Node(n)
		if h, _ := s.w.Hold(v); h.Node == n && h.SystemUUID != node.SystemUUID {
			return false
		}
		a := &k.machine.Agent
		if !k.working() || !a.Runs || a.Blind || len(a.Unread)+len(a.Torn) > 0 || !node.DoubtedHere(v) || k.machine.Uses(v) || slices.Contains(k.machine.Left, v) || s.usedAt(v, n) {
			return false
		}
	}
	return true
}

// keptDetached says whether a ticket keeps a volume from every node.
func (s *Sim) keptDetached(v ledger.VolumeID) bool {
	for _, key := range s.w.Keys(world.Tickets) {
		if t, _ := s.w.Ticket(world.TicketKey(key)); t.Node == ledger.Detached && t.Phase == ledger.TicketGranted && slices.Contains(s.w.TicketVolumes(t), v) {
			return true
		}
	}
	return false
}

// judgeDetached: a ticket that keeps its volumes from every node is told that they are at none, as
// soon as they are.
func (s *Sim) judgeDetached() {
	for _, key := range s.w.Keys(world.Tickets) {
		t, _ := s.w.Ticket(world.TicketKey(key))
		if t.Node == ledger.Detached && t.Phase == ledger.TicketGranted && t.SatisfiedSince == 0 && len(s.w.Refusals) == 0 && !slices.ContainsFunc(s.w.TicketVolumes(t), s.somewhere) {
			s.fault("ticket %s is not told that its volumes are attached nowhere", key)
		}
	}
}

// somewhere says whether anything shows a volume at a node.
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

// claimedElsewhere says whether somebody at another node has a volume, or had it by a claim that was lost. Two pods
// that wait at two nodes are not in each other's way: one of them has it, or is to get it.
func (s *Sim) claimedElsewhere(v ledger.VolumeID, p ledger.Pod) bool {
	for _, key := range s.w.Keys(world.Pods) {
		other, _ := s.w.Pod(key)
		list := s.w.Judge.UsedBy(s.w, other)
		claims := slices.Contains(list, v) || s.lostBy(other, v)
		if other.Node != "" && other.Node != p.Node && other.Phase != ledger.PodFinished && claims && s.shownAt(v, other.Node) {
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

// shownAt says whether an exclusive volume is at a node, or is to be: its hold, a VolumeAttachment or volumesAttached
// says so, or a machine has it. That volumesInUse names it says nothing: a pod may wait for it there.
func (s *Sim) shownAt(v ledger.VolumeID, n ledger.NodeName) bool {
	h, _ := s.w.Hold(v)
	_, exists := s.w.Attachment(ledger.AttachmentName(v, n))
	node, _ := s.w.Node(n)
	has := func(id string) bool { return s.w.Machines[id].Node == n }
	k := s.kubeletOf(n)
	return h.Node == n || exists || slices.Contains(node.Reported, v) || k != nil && k.machine.Uses(v) || slices.ContainsFunc(s.w.Disks.At[v], has)
}

// strayElsewhere says whether a volume is attached at another node for a request of a controller that
// was killed: nobody detaches that before kube-controller-manager starts again, and
// moorage-attacher attaches it nowhere else meanwhile.
func (s *Sim) strayElsewhere(v ledger.VolumeID, n ledger.NodeName) bool {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		if at, _ := s.w.Source(a); at == v && a.Node != n && s.strays[a.UID] {
			return true
		}
	}
	return false
}

// replaced says whether a volume is attached to a machine that was replaced by
// another of its name: to take it from there takes a person. Whoever leads goes by the name
// by which it was attached first, though the attacher has attached it by the other one since.
func (s *Sim) replaced(c *controller, v ledger.VolumeID) bool {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		at, _ := s.w.Source(a)
		if at == v && a.NodeID != "" && a.NodeID != s.nodeID(a.Node) {
			return true
		}
		if m := s.w.Machines[a.NodeID]; at == v && a.Attached && m != nil && s.w.AtReplaced(m, v) {
			return true // the mark of an attacher that has called for the machine before was late
		}
	}
	known := c.observer.snapshot().Volume(v)
	return known != nil && slices.ContainsFunc(known.NodeVolumes, func(p ledger.NodeVolume) bool {
		own := p.Own()
		return own != nil && own.NodeID != "" && own.NodeID != s.nodeID(p.Node) && s.stamped(own.UID, own.NodeID)
	})
}

// stamped says whether a VolumeAttachment has ever named a node by this name of the driver.
func (s *Sim) stamped(uid, nodeID string) bool {
	return slices.ContainsFunc(s.logs[world.Attachments], func(c world.Change) bool {
		a, ok := c.Fact.(ledger.Attachment)
		return ok && a.UID == uid && a.NodeID == nodeID
	})
}

// provedAbsent says whether a controller has proved of a volume without VolumeAttachments that it is not reported at
// the node that its hold names.
func provedAbsent(c *controller, v ledger.VolumeID) bool {
	known := c.observer.snapshot().Volume(v)
	return v.NoAttach() && known != nil && slices.ContainsFunc(known.NodeVolumes, func(p ledger.NodeVolume) bool {
		return p.Held && !p.Reported && p.Proof.Stage != ledger.ProofNone
	})
}

// judgeLeaks: what nobody uses is attached nowhere.
func (s *Sim) judgeLeaks(c *controller) {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		v, ok := s.w.Source(a)
		if ok && !s.strays[a.UID] && !s.usedAt(v, a.Node) && !s.triedInVain(v) && !s.replaced(c, v) && !s.w.RefusedFor(v, a.Node) && !s.doubted(c, v, a.Node) && s.reachable(a.Node) {
			s.fault("the VolumeAttachment of %s at %s is left over", v, a.Node)
		}
	}
	for _, n := range s.nodeNames() {
		node, _ := s.w.Node(n)
		for _, v := range node.Reported {
			if v.NoAttach() && !s.usedAt(v, n) && !s.triedInVain(v) && !s.vanished(v) && !s.w.RefusedFor(v, n) && !s.doubted(c, v, n) && s.reachable(n) {
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

// usedAt says whether a pod or ticket at a node uses a volume, also one whose claim was
// lost.
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

// triedInVain says whether the status of a ticket that asks for a volume is refused for good: it is granted again
// and again, and each time the volume begins to leave where it is, and does not.
func (s *Sim) triedInVain(v ledger.VolumeID) bool {
	return len(s.w.Refusals) > 0 && slices.ContainsFunc(s.w.Keys(world.Tickets), func(key string) bool {
		t, _ := s.w.Ticket(world.TicketKey(key))
		return t.Phase == ledger.TicketPending && s.w.Refuses(world.RefusedTickets, key) && slices.Contains(s.w.TicketVolumes(t), v)
	})
}

// lostBy says whether a claim of a pod led to a volume until its PersistentVolume
// vanished: a leader that saw this late has counted the pod as the volume's user.
func (s *Sim) lostBy(p ledger.Pod, v ledger.VolumeID) bool {
	return slices.ContainsFunc(p.Volumes, func(pv ledger.PodVolume) bool {
		lost, ok := s.w.LostBy(ledger.ClaimKey{Namespace: p.Namespace, Name: pv.Claim})
		return ok && lost == v
	})
}

// reachable says whether a node's kubelet is there to let go.
func (s *Sim) reachable(n ledger.NodeName) bool {
	k := s.kubeletOf(n)
	return k != nil && k.working()
}
