// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// A volume is unknown at a node if it may be mounted there and the kubelet's list does not tell. A
// restarting kubelet drops a mounted volume from volumesInUse if volumesAttached omits it
// (pkg/kubelet/volumemanager/reconciler, reconstruct_common.go), and then calls it unused as long as it
// runs. If it lists the volume later, that proves nothing: it lists it for a new pod, and drops it with that
// pod's end, before it unmounts it. There are three causes:
//   - another Node of the name was made by the same boot: its volumesAttached began empty;
//   - another machine has the node's name, and says nothing of the first one;
//   - the volume left volumesAttached by force, or by another component, while it may have been mounted.
//
// The volume is known again after one of these events:
//   - The machine boots anew (facts.bootOver), since a boot ends all mounts.
//   - moorage-node looks twice in the same boot, while the volume is out of volumesAttached, and finds nothing
//     (docs/decisions/0042).
//   - The attachment ends, and its mounts can't write any more. The event does not count if the attacher may
//     have left the volume attached (VolumeOnNode.Left). When the volume comes back to the same boot, its
//     VolumeHold still tells (Fence). A volume without attachments is known when its hold names another node.
//
// The boot of a possible mount has three sources: the grant in the hold or in the attachment's note, the
// hold's entry about a forced detach, and the memory of this process (VolumeOnNode.SawUnknown).

// Unknown lists the boots in which a volume may be mounted, though the kubelet's list does not tell; none:
// the list tells.
func (s Snapshot) Unknown(v *Volume, p *VolumeOnNode) []Boot { return s.facts.unknown(v, p) }

// IsUnknown: the volume is unknown at a node.
func (s Snapshot) IsUnknown(v *Volume, p *VolumeOnNode) bool { return len(s.facts.unknown(v, p)) > 0 }

// IsUnknownHere: the volume is unknown in the node's present boot only.
func (s Snapshot) IsUnknownHere(v *Volume, p *VolumeOnNode) bool { return s.facts.unknownHere(v, p) }

// unknownHere says whether a volume is unknown at a node, in its present boot and in no other.
func (w *facts) unknownHere(v *Volume, p *VolumeOnNode) bool {
	boots := w.unknown(v, p)
	return len(boots) > 0 && !slices.ContainsFunc(boots, func(b Boot) bool { return !b.Is(w.nodes.get(p.Node)) })
}

func (w *facts) unknown(v *Volume, p *VolumeOnNode) []Boot {
	if v == nil || p == nil {
		return nil
	}
	boots := p.SawUnknown()
	switch {
	case v.HasHold():
		h := v.Hold
		if h.Node == p.Node && p.MayBeMounted() && w.grantedBefore(h) && !laterBoot(boots, h.Boot()) {
			boots = withBoot(boots, h.Boot())
		}
		if f, found := h.Fence(p.Node); found && w.takenUnknown(p, f) {
			boots = withBoot(boots, f.Boot())
		}
	case p.first.noted():
		if h := p.first.hold(); w.grantedBefore(&h) && !laterBoot(boots, h.Boot()) {
			boots = withBoot(boots, h.Boot())
		}
	}
	return boots
}

// takenUnknown: a forced detach leaves open if the volume is mounted. It was in use, the boot may last, and
// the volume is bound to that boot.
func (w *facts) takenUnknown(p *VolumeOnNode, f Fence) bool {
	n := w.nodes.get(p.Node)
	if !f.InUse || !p.stillMeant(f) || f.Rule != "" && p.Reported && !f.Boot().IsOfAnother(n) {
		return false // not taken while reported
	}
	return !w.bootOver(n, f.Boot()) && (!anotherBoot(n, f) || p.takenAsIs(f))
}

// laterBoot: the list names another boot of the machine, later than a grant.
func laterBoot(list []Boot, b Boot) bool {
	return slices.ContainsFunc(list, func(o Boot) bool {
		return b.SystemUUID != "" && b.SystemUUID != OtherMachine && o.SystemUUID == b.SystemUUID && o.BootID != "" && o.BootID != b.BootID
	})
}

// withBoot copies a list that snapshots may share.
func withBoot(boots []Boot, b Boot) []Boot {
	if slices.Contains(boots, b) {
		return boots
	}
	return append(slices.Clip(boots), b)
}

// makeUnknown also voids earlier proofs of no use.
func (l *Ledger) makeUnknown(now time.Time, t *Touched, v VolumeID, n NodeName, b Boot) {
	if p := l.facts.volumes.get(v).OnNode(n); p != nil && !slices.Contains(p.SawUnknown(), b) {
		l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) {
			p.setUnknown(withBoot(p.SawUnknown(), b))
			if !p.InUse {
				p.Proof = Proof{}
			}
		})
	}
}

// trust forgets the seen boots: the attachment is gone, or moorage-node has found nothing. A possible
// leftover stays unknown.
func (l *Ledger) trust(now time.Time, t *Touched, n NodeName, v VolumeID) {
	if p := l.facts.volumes.get(v).OnNode(n); p != nil && !p.Left && len(p.SawUnknown()) > 0 {
		l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) { p.setUnknown(nil) })
	}
}

// seeBoot precedes a new state's lists. A Node made again may be of the same boot until it reports another,
// since its maker may be no kubelet. Without any reported boot of the name nothing shows it. stale: the
// former volumes in use are of an ended boot or another machine.
func (l *Ledger) seeBoot(now time.Time, t *Touched, was, is *NodeState) (stale bool) {
	rec, clone := l.node(is.Name), cloned(was, is)
	if clone {
		rec.last.SystemUUID = OtherMachine
	}
	remade, over := was.UID != "" && was.UID != is.UID, l.facts.bootOver(rec, rec.last)
	another := rec.last.IsOfAnother(rec) && (remade || clone || was.SystemUUID != is.SystemUUID)
	if !over && (remade || another) {
		l.abandon(now, t, rec, another)
	}
	for _, v := range rec.At() {
		p := l.facts.volumes.get(v).OnNode(is.Name)
		var lasting []Boot
		for _, b := range p.SawUnknown() {
			if clone && (b.SystemUUID == is.SystemUUID || b.SystemUUID == was.SystemUUID) {
				b.SystemUUID = OtherMachine
			}
			unsaid := over && b.BootID == "" && (b.SystemUUID == "" || b.SystemUUID == rec.last.SystemUUID)
			if !unsaid && !l.facts.bootOver(rec, b) {
				lasting = withBoot(lasting, b)
			}
		}
		if !slices.Equal(lasting, p.SawUnknown()) {
			l.changeVolumeOnNode(now, t, v, is.Name, func(p *VolumeOnNode) { p.setUnknown(lasting) })
		}
		if over && remade && len(lasting) == 0 { // writes to the former volumesAttached fail now
			l.changeVolumeOnNode(now, t, v, is.Name, func(p *VolumeOnNode) { p.ReportSent = false })
		}
	}
	if made := was.UID != is.UID && !l.facts.complete.IsZero(); over || made || rec.last.BootID != "" && is.BootID != "" && rec.last.BootID != is.BootID {
		l.wakeTaken(t, is.Name)
	}
	if is.BootID != "" {
		rec.last = Boot{is.SystemUUID, is.BootID}
	}
	return over && remade || another
}

// abandon makes volumes unknown: the Node is gone or names another machine. A kubelet may list an unknown
// volume while it waits. Only another machine's kubelet says nothing of a ticket's holder.
func (l *Ledger) abandon(now time.Time, t *Touched, n *Node, another bool) {
	if n.last.BootID == "" {
		return
	}
	for _, v := range n.At() {
		p := l.facts.volumes.get(v).OnNode(n.Name)
		there := p.HasAttachments() || p.Left || p.WithoutAttachment()
		if there && (p.Reported || p.ReportSent || p.Unlisted && another || p.InUse && len(p.SawUnknown()) == 0) {
			l.makeUnknown(now, t, v, n.Name, n.last)
		}
	}
}

// seeTaken makes unreported volumes unknown that may be in use. Volumes that this process removed by the
// kubelet's word are unused; other components or force removed the rest. It runs between the lists' new and
// missing entries.
func (l *Ledger) seeTaken(now time.Time, t *Touched, n NodeName, reported []VolumeID) {
	rec := l.facts.nodes.get(n)
	if rec.reported == len(reported) {
		return
	}
	for _, v := range rec.At() {
		p := l.facts.volumes.get(v).OnNode(n)
		if _, still := slices.BinarySearchFunc(reported, v, VolumeID.Compare); !still && p.Reported && p.InUse && (p.MayBeMounted() || v.NoAttach()) {
			l.makeUnknown(now, t, v, n, rec.last)
		}
	}
}

func (e TookOver) apply(l *Ledger, now time.Time, t *Touched) {
	l.beginTerm(e.Epoch)
	type at struct {
		volume VolumeID
		node   NodeName
		by     Requester
	}
	var reported, untold []at // untold: with a ticket now or when last Ready
	for v := range l.facts.volumes.all() {
		for i := range v.OnNodes {
			if p := &v.OnNodes[i]; p.MayBeThere(v.ID) {
				if by, may := v.ticketAt(p); may {
					untold = append(untold, at{v.ID, p.Node, by})
				}
			}
		}
		if v.Hold == nil {
			continue
		}
		for _, f := range v.Hold.Fences {
			if l.wasReported(v, f) {
				reported = append(reported, at{volume: v.ID, node: f.Node})
			}
		}
	}
	for _, a := range reported {
		l.changeVolumeOnNode(now, t, a.volume, a.node, func(p *VolumeOnNode) { p.ReportSent = true })
	}
	for _, u := range untold {
		l.changeVolumeOnNode(now, t, u.volume, u.node, func(p *VolumeOnNode) { p.Unlisted = true; p.setOdd(cmp.Or(p.UnlistedBy(), &u.by), p.SawUnknown()) })
	}
}

// ticketAt is a ticket that may have had the volume at a node by hold or note: a volume with a ticket has a
// hold. A shared volume's hold does not say. A hold that names the node later gives an unknown ticket.
func (v *Volume) ticketAt(p *VolumeOnNode) (Requester, bool) {
	if !v.HasHold() && p.first.noted() {
		return Requester{}, false
	}
	h := v.Written()
	if h.Node != p.Node {
		return Requester{Ticket: true, Namespace: "unknown", Name: "unknown", UID: "unknown"}, true
	}
	if i := slices.IndexFunc(h.Requesters, func(r Requester) bool { return r.Ticket }); i >= 0 {
		return h.Requesters[i], true
	}
	return Requester{}, false
}

// NamesTicket: a ticket is among the hold's users.
func (h *Hold) NamesTicket() bool {
	return h != nil && slices.ContainsFunc(h.Requesters, func(r Requester) bool { return r.Ticket })
}

// wasReported: only a hold says that a volume without attachments was in volumesAttached, in a boot that
// may last.
func (l *Ledger) wasReported(v *Volume, f Fence) bool {
	p := v.OnNode(f.Node)
	return v.ID.NoAttach() && f.Reported && f.Rule == "" && f.InUse && (p == nil || !p.WithoutAttachment()) &&
		!l.facts.bootOver(l.facts.nodes.get(f.Node), f.Boot())
}

// GrantedBefore: by its hold, a volume was granted for a deleted Node or former machine in a boot that may
// last, and may be mounted there unlisted.
func (s Snapshot) GrantedBefore(h *Hold) bool { return s.facts.grantedBefore(h) }

func (w *facts) grantedBefore(h *Hold) bool {
	if h == nil || h.Node == "" || h.NodeUID == "" || h.BootID == "" {
		return false
	}
	n := w.nodes.get(h.Node)
	return (n == nil || !n.Exists || n.UID != h.NodeUID || h.Boot().IsOfAnother(n)) && !w.bootOver(n, h.Boot())
}

// NodesOfBefore are nodes with another machine or boot than in a volume's hold or note, and the node where
// the volume was left (LeftAtAnother).
func (s Snapshot) NodesOfBefore(v *Volume) iter.Seq[NodeName] {
	return func(yield func(NodeName) bool) {
		h := v.Record()
		if (h.Stays && h.Node != "" || s.facts.grantedBefore(&h) || s.facts.namesAnother(h.Node, h.Boot())) && !yield(h.Node) {
			return
		}
		for _, f := range h.Fences {
			if s.facts.namesAnother(f.Node, f.Boot()) && !yield(f.Node) {
				return
			}
		}
	}
}

// namesAnother says whether a node is missing, or has another boot or machine.
func (w *facts) namesAnother(name NodeName, b Boot) bool {
	n := w.nodes.get(name)
	return name != "" && b.BootID != "" && (n == nil || !n.Exists || n.BootID != b.BootID || b.IsOfAnother(n))
}

// anotherBoot says whether a node has another boot than a hold's entry, on the same machine or not.
func anotherBoot(n *Node, f Fence) bool {
	return n != nil && n.Exists && n.BootID != "" && f.BootID != "" && n.BootID != f.BootID
}

// takenAsIs: the entry is of the present attachment. A former attachment's mounts are harmless; only that
// boot's kubelet may miss the volume later.
func (p *VolumeOnNode) takenAsIs(f Fence) bool {
	return p.Left || p.WithoutAttachment() || f.Reported || p.HasOwn() && p.first.uidText() == f.Attachment
}

// stillMeant: a forced detach's entry is about the present binding; without a rule, about any attachment in
// that boot.
func (p *VolumeOnNode) stillMeant(f Fence) bool {
	switch {
	case p.Left, f.Reported:
		return true
	case p.WithoutAttachment():
		return f.Attachment == ""
	}
	return p.HasOwn() && (f.Rule == "" || p.first.uidText() == f.Attachment)
}

// wakeTaken touches volumes taken by force: that may be over, or matter again.
func (l *Ledger) wakeTaken(t *Touched, n NodeName) {
	for v := range l.facts.volumes.all() {
		if _, found := v.Hold.Fence(n); found {
			t.volume(v.ID)
		}
	}
}

// MayBeMounted ignores reported use: the volume is attached, perhaps left, or needs no attachment.
func (p *VolumeOnNode) MayBeMounted() bool { return p.HasOwn() || p.Left || p.WithoutAttachment() }

// voidForced follows the end of a rule of force at a node.
func (l *Ledger) voidForced(now time.Time, t *Touched, n *Node) {
	for _, v := range n.At() {
		if p := l.facts.volumes.get(v).OnNode(n.Name); p != nil && p.Proof.Forced {
			l.changeVolumeOnNode(now, t, v, n.Name, func(p *VolumeOnNode) { p.Proof = Proof{} })
		}
	}
}
