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

// Unknown lists the boots in which a volume may be mounted at a node, although the kubelet's list does not
// tell; none: the list tells.
func (s Snapshot) Unknown(v *Volume, p *VolumeOnNode) []Boot { return s.facts.unknown(v, p) }

// IsUnknown says whether a volume is unknown at a node.
func (s Snapshot) IsUnknown(v *Volume, p *VolumeOnNode) bool { return len(s.facts.unknown(v, p)) > 0 }

// IsUnknownHere says whether a volume is unknown at a node, in its present boot and in no other.
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

// takenUnknown says whether a hold's entry about a forced detach leaves open if the volume is mounted at the
// node: it was in use, the boot may last, and the volume is bound to that boot still or again.
func (w *facts) takenUnknown(p *VolumeOnNode, f Fence) bool {
	n := w.nodes.get(p.Node)
	if !f.InUse || !p.stillMeant(f) || f.Rule != "" && p.Reported && !f.Boot().IsOfAnother(n) {
		return false // while the node reports it, it is not taken yet
	}
	return !w.bootOver(n, f.Boot()) && (!anotherBoot(n, f) || p.takenAsIs(f))
}

// laterBoot says whether a list names another boot of the same machine: what this process saw is later than
// a grant.
func laterBoot(list []Boot, b Boot) bool {
	return slices.ContainsFunc(list, func(o Boot) bool {
		return b.SystemUUID != "" && b.SystemUUID != OtherMachine && o.SystemUUID == b.SystemUUID && o.BootID != "" && o.BootID != b.BootID
	})
}

// withBoot adds a boot to a list that snapshots may share.
func withBoot(boots []Boot, b Boot) []Boot {
	if slices.Contains(boots, b) {
		return boots
	}
	return append(slices.Clip(boots), b)
}

// makeUnknown counts a volume as unknown in a boot. Earlier proofs that it is unused are void.
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

// trust forgets the boots that this process saw: the attachment at the node is gone, or moorage-node has found
// nothing. A volume that may have been left is still unknown.
func (l *Ledger) trust(now time.Time, t *Touched, n NodeName, v VolumeID) {
	if p := l.facts.volumes.get(v).OnNode(n); p != nil && !p.Left && len(p.SawUnknown()) > 0 {
		l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) { p.setUnknown(nil) })
	}
}

// seeBoot takes in the machine and boot of a node's new state, before the lists of this state; was is the
// state before. A Node that was made again may be of the same boot until it reports another: its maker may
// be no kubelet, and report none. If no kubelet of the name has ever reported a boot, nothing shows it. The
// earlier list of volumes in use is stale if it is of a boot that is over, or of another machine.
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
		if over && remade && len(lasting) == 0 { // no write to the former volumesAttached succeeds any more
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

// abandon counts the volumes of a node as unknown: its Node is gone, or names another machine. A kubelet that
// lists an unknown volume may wait for it. Only another machine's kubelet says nothing of a ticket's holder.
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

// seeTaken counts volumes as unknown that a Node's new state no longer reports, though they may be in use
// there. Volumes that this process takes out by the kubelet's word are unused; other components took out the
// rest, or force did. The lists' new entries are taken in, and missing ones still count.
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
	var reported, untold []at // untold: volumes that a ticket has, or had when the node was last Ready
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

// ticketAt is a ticket that may have had the volume at a node when its hold or note was written: a volume with
// a ticket has a hold. A shared volume's hold does not say. The hold has an unknown ticket if it names that
// node later.
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

// NamesTicket says whether a hold names a ticket among the users at its node.
func (h *Hold) NamesTicket() bool {
	return h != nil && slices.ContainsFunc(h.Requesters, func(r Requester) bool { return r.Ticket })
}

// wasReported says whether only a hold says that a volume without attachments was in a node's
// volumesAttached, in a boot that may last.
func (l *Ledger) wasReported(v *Volume, f Fence) bool {
	p := v.OnNode(f.Node)
	return v.ID.NoAttach() && f.Reported && f.Rule == "" && f.InUse && (p == nil || !p.WithoutAttachment()) &&
		!l.facts.bootOver(l.facts.nodes.get(f.Node), f.Boot())
}

// GrantedBefore says whether, by its hold, a volume was granted for a deleted Node, or for a former machine
// of the Node, in a boot that may last: that boot's kubelet may have the volume mounted without listing it.
func (s Snapshot) GrantedBefore(h *Hold) bool { return s.facts.grantedBefore(h) }

func (w *facts) grantedBefore(h *Hold) bool {
	if h == nil || h.Node == "" || h.NodeUID == "" || h.BootID == "" {
		return false
	}
	n := w.nodes.get(h.Node)
	return (n == nil || !n.Exists || n.UID != h.NodeUID || h.Boot().IsOfAnother(n)) && !w.bootOver(n, h.Boot())
}

// NodesOfBefore are the nodes for which a volume's hold or note names another machine or boot than the known
// one, and the node where the volume was left, since another machine may have that name by now
// (LeftAtAnother).
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

// namesAnother says whether a node does not exist, or its Node names another boot or machine than this one.
func (w *facts) namesAnother(name NodeName, b Boot) bool {
	n := w.nodes.get(name)
	return name != "" && b.BootID != "" && (n == nil || !n.Exists || n.BootID != b.BootID || b.IsOfAnother(n))
}

// anotherBoot says whether a node has another boot than a hold's entry, on the same machine or not.
func anotherBoot(n *Node, f Fence) bool {
	return n != nil && n.Exists && n.BootID != "" && f.BootID != "" && n.BootID != f.BootID
}

// takenAsIs says whether a hold's entry about this node is of the present attachment, not of an earlier
// one. Mounts of a former attachment are harmless; only the kubelet of that boot may fail to count the
// volume later.
func (p *VolumeOnNode) takenAsIs(f Fence) bool {
	return p.Left || p.WithoutAttachment() || f.Reported || p.HasOwn() && p.first.uidText() == f.Attachment
}

// stillMeant says whether a hold's entry about a forced detach is about the volume's present binding to
// this node. Without a rule it is about any attachment there in that boot.
func (p *VolumeOnNode) stillMeant(f Fence) bool {
	switch {
	case p.Left, f.Reported:
		return true
	case p.WithoutAttachment():
		return f.Attachment == ""
	}
	return p.HasOwn() && (f.Rule == "" || p.first.uidText() == f.Attachment)
}

// wakeTaken touches all volumes that their holds say were taken from a node by force: that may be over, or
// matter again.
func (l *Ledger) wakeTaken(t *Touched, n NodeName) {
	for v := range l.facts.volumes.all() {
		if _, found := v.Hold.Fence(n); found {
			t.volume(v.ID)
		}
	}
}

// MayBeMounted says whether the volume may be mounted at the node, regardless of reported use: it is
// attached, may have been left attached, or may be there without needing an attachment.
func (p *VolumeOnNode) MayBeMounted() bool { return p.HasOwn() || p.Left || p.WithoutAttachment() }

// voidForced voids the proofs by force at a node: the rule has ended.
func (l *Ledger) voidForced(now time.Time, t *Touched, n *Node) {
	for _, v := range n.At() {
		if p := l.facts.volumes.get(v).OnNode(n.Name); p != nil && p.Proof.Forced {
			l.changeVolumeOnNode(now, t, v, n.Name, func(p *VolumeOnNode) { p.Proof = Proof{} })
		}
	}
}
