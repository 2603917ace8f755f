// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// grants: no grant takes a node past each limit that it has had (I2), nor shares an exclusive volume with
// another granted ticket (I1). Slots are counted from the API's objects alone: a volume at a node once, and
// without slots of binds that the granter may not know.
func (j *Judge) grants(w *World, t ledger.Ticket, r Request) {
	there, counted := w.bound(t.Node), j.accountable(w, t, max(VersionOf(t), r.Decided))
	fresh := map[string]bool{}
	for _, v := range w.TicketVolumes(t) {
		// An attachment with its slot is known by its name, also after its PersistentVolume has gone.
		_, attaches := typed[ledger.Attachment](&w.Objects, Attachments, ledger.AttachmentName(v, t.Node))
		if !there[v] && !attaches && !j.everAt(w, At{v, t.Node}) && !(j.shrank && w.marked(j.leavers, At{v, t.Node})) {
			fresh[v.Driver] = true
		}
		counted[v] = true
		j.knowsPast(w, At{v, t.Node})
		j.shares(w, t, v, r.Since)
	}
	for driver, n := range slotsTaken(counted) {
		if limit := j.limits[slots{t.Node, driver}]; n > limit && fresh[driver] && t.Node != ledger.Detached {
			j.fault("ticket %s is granted at %s past the limit of %s: %d of %d", t.ID.Name, t.Node, driver, n, limit)
		}
	}
}

// binds: a Moorage scheduler binds a pod where it may, by its own facts. If it is alone it knows each bind:
// it takes no node past its limit by pods, and puts no exclusive volume at a second node. If other
// schedulers bind pods as well, one of the pods waits.
func (j *Judge) binds(w *World, p ledger.Pod, n ledger.NodeName, r Request) {
	if j.Alone {
		j.bindsBesidePods(w, p, n, r.InUse)
	}
	j.bindsBeside(w, p, n, r.Since)
	j.bound, j.placed = with(j.bound, p.UID, true), with(j.placed, p.UID, true)
	if now, exists := w.Node(n); !exists || shaky(now) {
		j.shaken = with(j.shaken, p.UID, true)
	}
}

// bindsBesidePods compares a bind with the pods that are already bound. counted are the volumes that the
// scheduler counted at the node before: they need no other slot, though they may have left since.
func (j *Judge) bindsBesidePods(w *World, p ledger.Pod, n ledger.NodeName, counted []ledger.VolumeID) {
	if _, exists := w.Node(n); !exists || j.shook[n] > VersionOf(p) {
		return // others may have got the volumes while the Binding was in flight
	}
	mine, _ := w.VolumesOf(p)
	there, known, fresh := map[ledger.VolumeID]bool{}, w.bound(n), map[string]bool{}
	for _, other := range w.PodsAt(n) {
		if other.Phase != ledger.PodFinished {
			volumes, _ := w.VolumesOf(other)
			for _, v := range volumes {
				there[v] = true
			}
		}
	}
	for _, v := range mine {
		if other, uses := j.usedBeside(w, p, v, n, there[v]); uses {
			j.fault("pod %s is bound to %s while pod %s at %s uses %s", p.UID, n, other.UID, other.Node, v)
		}
		fresh[v.Driver] = fresh[v.Driver] || !known[v] && !slices.Contains(counted, v)
	}
	for _, v := range mine {
		there[v] = true
	}
	for driver, taken := range slotsTaken(there) {
		if limit := j.highest[slots{n, driver}]; taken > limit && fresh[driver] {
			j.fault("pod %s is bound to %s past the limit of %s: %d of %d", p.UID, n, driver, taken, limit)
		}
	}
}

// attachesPast: no VolumeAttachment takes a node past its highest limit for opted-in pods that have not
// started. For others, and for tickets, the driver or the grant decides: their attachments may overtake an
// earlier one, and are not counted.
func (j *Judge) attachesPast(w *World, at At) {
	limit, known := j.highest[slots{at.Node, at.Volume.Driver}]
	node, _ := w.Node(at.Node)
	if waits, others := j.attachedFor(w, at); j.Cooperative || !known || !waits || others || slices.Contains(node.Reported, at.Volume) {
		return
	}
	there := map[ledger.VolumeID]bool{at.Volume: true}
	for _, e := range w.all[Attachments] {
		if a := e.(ledger.Attachment); a.Ours && a.Node == at.Node {
			v, _ := w.Attaches(a)
			if _, others := j.attachedFor(w, At{v, at.Node}); !v.IsZero() && !others {
				there[v] = true
			}
		}
	}
	if taken := slotsTaken(there)[at.Volume.Driver]; taken > limit {
		j.fault("%s is attached to %s past the limit of %s for pods that opted in: %d of %d", at.Volume, at.Node, at.Volume.Driver, taken, limit)
	}
}

// attachedFor says whether pods want a volume at a node; and whether a pod that did not opt in or that has
// started, or a ticket, wants it there, or did.
func (j *Judge) attachedFor(w *World, at At) (pods, others bool) {
	others = j.unlimited[at] || w.granted(at.Node)[at.Volume]
	for _, p := range w.PodsAt(at.Node) {
		if slices.Contains(j.UsedBy(w, p), at.Volume) { // its claim may have been bound since the pod changed last
			pods, others = pods || p.Phase == ledger.PodLive, others || p.OptedOut || p.Started
		}
	}
	return pods, others
}

// shows says whether any object shows that a pod uses a volume: its claims, the VolumeHold, or the note of a
// VolumeAttachment.
func (w *World) shows(p ledger.Pod, v ledger.VolumeID) bool {
	if mine, _ := w.VolumesOf(p); slices.Contains(mine, v) {
		return true
	}
	for _, e := range w.all[Attachments] {
		if e.(ledger.Attachment).Note.Pod == p.UID {
			return true
		}
	}
	h, _ := w.Hold(v)
	return slices.ContainsFunc(slices.Concat(h.Requesters, h.Waiting, []ledger.Requester{h.Next.To}), func(r ledger.Requester) bool { return r.UID == p.UID })
}

// usedBeside is a bound pod that keeps an exclusive volume from a pod at a node. If a pod at the node also
// has the volume, or a ticket granted meanwhile, there are already two claimants.
func (j *Judge) usedBeside(w *World, p ledger.Pod, v ledger.VolumeID, n ledger.NodeName, there bool) (ledger.Pod, bool) {
	if !w.Exclusive(v) || w.migrates(v) || w.granted(n)[v] {
		return ledger.Pod{}, false
	}
	for _, key := range w.Keys(Pods) {
		other, _ := w.Pod(key)
		volumes, _ := w.VolumesOf(other)
		if other.UID == p.UID || other.Node == "" || other.Phase != ledger.PodLive || !slices.Contains(volumes, v) {
			continue
		}
		if elsewhere := other.Node != n && !there; (elsewhere || w.onePod(v)) && !j.shaken[other.UID] && !j.mayTakeFrom(w, At{v, other.Node}) {
			return other, true
		}
	}
	return ledger.Pod{}, false
}

// shakes notes the pods that may lose their volumes, since their node is out of service, fenced, cut off or
// shut down, or its Node is deleted before anything is attached, also if the leader hears that after its
// end. A pod bound to a deleted Node has nothing there, and Kubernetes' pod garbage collector deletes it.
func (j *Judge) shakes(w *World, n ledger.NodeState, deleted bool) {
	if shaky(n) || n.Ready != ledger.ReadyTrue || deleted {
		j.shook = with(j.shook, n.Name, w.version)
	}
	if !shaky(n) && !deleted {
		return
	}
	for _, p := range w.placed() {
		if p.Node == n.Name {
			j.shaken = with(j.shaken, p.UID, true)
		}
	}
}

// shaky says whether the evidence about a node says that its machine uses no volumes any more.
func shaky(n ledger.NodeState) bool {
	return n.OutOfService || n.Shutdown || len(n.Fenced)+len(n.CutOff) > 0
}

// Shaken says whether a pod's node was out of service, or its Node gone, since a Moorage scheduler bound
// the pod.
func (j *Judge) Shaken(uid string) bool { return j.shaken[uid] }

// placed are the unfinished pods that a Moorage scheduler has bound.
func (w *World) placed() []ledger.Pod {
	var list []ledger.Pod
	for uid := range w.Judge.placed {
		if p, exists := w.Pod(uid); exists && p.Phase != ledger.PodFinished {
			list = append(list, p)
		}
	}
	return list
}

// sharesNot: no volume, shared or not, is granted as detached while it has a user, or the other way round;
// nor to two tickets at one node with different parameters. The first of the yielding tickets is asked by
// then.
func (j *Judge) sharesNot(w *World, t ledger.Ticket, v ledger.VolumeID) {
	if t.Type.Yields() {
		return
	}
	for _, key := range w.Keys(Tickets) {
		other, _ := w.Ticket(TicketKey(key))
		if other.ID == t.ID || other.Phase != ledger.TicketGranted || other.Type.Yields() || !slices.Contains(w.TicketVolumes(other), v) {
			continue
		}
		detached := (t.Node == ledger.Detached) != (other.Node == ledger.Detached)
		switch {
		case detached && (t.Node == ledger.Detached && j.mayTakeFrom(w, At{v, other.Node})):
		case detached:
			j.fault("%s is granted to ticket %s at %s while ticket %s at %s has it", v, t.ID.Name, t.Node, other.ID.Name, other.Node)
		case t.Node == other.Node && t.Parameters != other.Parameters && !j.mayTakeFrom(w, At{v, t.Node}):
			j.fault("%s is granted to ticket %s at %s while ticket %s has it there with other parameters", v, t.ID.Name, t.Node, other.ID.Name)
		}
	}
}

// shares: an exclusive volume is granted to tickets of one node only; a volume for a single pod to one
// ticket only. It is not granted beside a pod that is bound elsewhere and known to the granter: the
// granter has seen the pods up to the version known. A pod whose PersistentVolume vanished before any object
// named the pod is not known to use the volume.
func (j *Judge) shares(w *World, t ledger.Ticket, v ledger.VolumeID, known int64) {
	j.sharesNot(w, t, v)
	if !w.Exclusive(v) || w.migrates(v) || t.Type == ledger.TypeLiveMigration || t.Type.Yields() {
		return
	}
	for _, key := range w.Keys(Tickets) {
		other, _ := w.Ticket(TicketKey(key))
		if other.ID == t.ID || other.Phase != ledger.TicketGranted || other.Type.Yields() ||
			!slices.Contains(w.TicketVolumes(other), v) || other.Node == ledger.Detached || t.Node == ledger.Detached || j.mayTakeFrom(w, At{v, other.Node}) {
			continue
		}
		if other.Node != t.Node || w.onePod(v) {
			j.fault("%s is granted to ticket %s at %s while ticket %s at %s has it", v, t.ID.Name, t.Node, other.ID.Name, other.Node)
		}
	}
	holder := w.Holder(v)
	for _, p := range w.placed() {
		if _, covered := w.Attachment(ledger.AttachmentName(v, p.Node)); covered || VersionOf(p) > known || j.shaken[p.UID] || p.Phase != ledger.PodLive || !slices.Contains(j.UsedBy(w, p), v) || j.mayTakeFrom(w, At{v, p.Node}) || !w.shows(p, v) {
			continue
		}
		if !w.onePod(v) && holder != p.Node && (j.been[At{v, t.Node}] || holder == t.Node && w.grantedBeside(t, v)) {
			continue // another user has or had it there, and a pod that was bound elsewhere since waits for that
		}
		if p.Node != t.Node || w.onePod(v) {
			j.fault("%s is granted to ticket %s at %s while pod %s, bound at %s, has it", v, t.ID.Name, t.Node, p.UID, p.Node)
		}
	}
}

// grantedBeside says whether a volume is granted to another ticket at a ticket's node.
func (w *World) grantedBeside(t ledger.Ticket, v ledger.VolumeID) bool {
	return slices.ContainsFunc(w.Keys(Tickets), func(key string) bool {
		other, _ := w.Ticket(TicketKey(key))
		return other.ID != t.ID && other.Node == t.Node && other.Phase == ledger.TicketGranted && slices.Contains(w.TicketVolumes(other), v)
	})
}

func (w *World) onePod(v ledger.VolumeID) bool {
	for _, pv := range w.all[PersistentVolumes] {
		if pv := pv.(ledger.PersistentVolume); pv.Volume == v && pv.Access == ledger.AccessPod {
			return true
		}
	}
	return false
}

// told is the longest time until Moorage knows kube-controller-manager's new objects, or that a Lease is
// renewed again.
const told = 15 * time.Second

// booked are the volumes that granted tickets or VolumeAttachments bind to a node: the granter must know
// them. It may not know a new attachment of kube-controller-manager for a pod, and the pod's ticket may
// have ended meanwhile: Cooperative mode promises limits among tickets only.
func (w *World) booked(n ledger.NodeName) map[ledger.VolumeID]bool {
	used := map[ledger.VolumeID]bool{}
	for _, e := range w.all[Attachments] {
		a := e.(ledger.Attachment)
		if v, ok := w.Source(a); ok && a.Node == n && (a.Ours || w.Now.Sub(w.made[a.UID].At) >= told) {
			used[v] = true
		}
	}
	for _, e := range w.all[Holds] {
		if h := e.(ledger.HoldSeen); h.Hold.Stays && h.Hold.Node == n {
			used[h.Volume] = true
		}
	}
	maps.Copy(used, w.granted(n))
	return used
}

func (w *World) granted(n ledger.NodeName) map[ledger.VolumeID]bool {
	used := map[ledger.VolumeID]bool{}
	for _, e := range w.all[Tickets] {
		if t := e.(ledger.Ticket); t.Node == n && t.Phase == ledger.TicketGranted {
			for _, v := range w.TicketVolumes(t) {
				used[v] = true
			}
		}
	}
	return used
}

// bound are those, and volumes that bound pods, the node's status and new VolumeAttachments of
// kube-controller-manager bind to it: the granter may know them or not.
func (w *World) bound(n ledger.NodeName) map[ledger.VolumeID]bool {
	used := w.booked(n)
	for _, e := range w.all[Attachments] {
		if a := e.(ledger.Attachment); a.Node == n {
			if v, ok := w.Source(a); ok {
				used[v] = true
			}
		}
	}
	node, _ := w.Node(n)
	for _, v := range slices.Concat(node.InUse, node.Reported) {
		used[v] = true
	}
	for _, p := range w.PodsAt(n) {
		if p.Phase == ledger.PodFinished {
			continue
		}
		for _, v := range w.Judge.UsedBy(w, p) {
			used[v] = true
		}
		for _, v := range p.Volumes {
			if id, ok := w.claimed(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim}); ok {
				used[id] = true
			}
		}
	}
	return used
}

// slotsTaken counts, by driver, the volumes that take a slot: those without VolumeAttachments take none.
func slotsTaken(volumes map[ledger.VolumeID]bool) map[string]int32 {
	count := map[string]int32{}
	for v := range volumes {
		if !v.NoAttach() {
			count[v.Driver]++
		}
	}
	return count
}

// HasRoom says whether these volumes fit a node by the limits of its CSINode, beside all volumes bound to
// it.
func (w *World) HasRoom(n ledger.NodeName, volumes []ledger.VolumeID) bool {
	taken := w.bound(n)
	for _, v := range volumes {
		taken[v] = true
	}
	used := slotsTaken(taken)
	node, _ := w.Drivers(n)
	return !slices.ContainsFunc(node.Drivers, func(d ledger.DriverOnNode) bool {
		return d.Limit != ledger.NoLimit && used[d.Name] > d.Limit
	})
}

// claimed is the future volume of an unbound claim; a claim that has lost its volume gets no other.
func (w *World) claimed(key ledger.ClaimKey) (ledger.VolumeID, bool) {
	claim, exists := typed[ledger.Claim](&w.Objects, Claims, key.String())
	class, known := typed[ledger.StorageClass](&w.Objects, Classes, claim.Class)
	return ledger.UnboundClaim(class.Driver, claim.UID), exists && known && !claim.Bound && !claim.Lost
}

// PodVolumes are the volumes that a pod needs attached; for an unbound claim, its future volume.
func (w *World) PodVolumes(p ledger.Pod) []ledger.VolumeID {
	var list []ledger.VolumeID
	for _, v := range p.Volumes {
		key := ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim}
		id, ok := v.Inline, v.Claim == ""
		if !ok {
			id, ok = w.Resolve(key)
		}
		if !ok {
			id, ok = w.claimed(key)
		}
		if ok && w.Needs(id) {
			list = append(list, id)
		}
	}
	return list
}

// TicketVolumes are the volumes that a ticket needs attached.
func (w *World) TicketVolumes(t ledger.Ticket) []ledger.VolumeID {
	var list []ledger.VolumeID
	for _, tv := range t.Volumes {
		key := ledger.ClaimKey{Namespace: t.ID.Namespace, Name: tv.Claim}
		id, ok := w.Resolve(key)
		if tv.PersistentVolume != "" {
			pv, exists := typed[ledger.PersistentVolume](&w.Objects, PersistentVolumes, tv.PersistentVolume)
			id, ok = pv.Volume, exists
		}
		if ok && w.Needs(id) {
			list = append(list, id)
		}
	}
	return list
}
