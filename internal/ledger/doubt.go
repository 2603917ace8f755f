// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// doubt is an attached volume that may be in use although the node's own list omits it. A restarting
// kubelet drops a mounted volume from volumesInUse if volumesAttached omits it
// (pkg/kubelet/volumemanager/reconciler, reconstruct_common.go), and then says that it is unused as long as
// it runs. That may have happened if a Node was made again by the same boot, since its volumesAttached
// begins empty, or if the volume was taken out by force, or by another component. The volume counts as in
// use until one of these:
//   - the machine has booted, which ends all mounts: another boot of the same machine (facts.bootOver).
//     Another machine of this name, or a possible one, shows nothing: its predecessor's volumes are in
//     doubt from then on;
//   - the attachment is gone: its mounts can't write any more. This does not hold if the attacher may have
//     left the volume attached (NodeVolume.Left). For a volume without attachments: the hold has given it
//     to another node. When the volume comes back to that boot of the machine, the doubt comes back
//     (doubtAgain);
//   - moorage-node has looked twice in that boot since the volume left volumesAttached, and has found
//     nothing of it (docs/decisions/0042).
//
// If such a kubelet lists the volume later, that proves nothing: it lists the volume for a new pod, and
// drops it with that pod's end, before it unmounts it. A volume that it did not find in volumesAttached
// never counts again (addVolume in pkg/kubelet/volumemanager/cache/actual_state_of_world.go keeps
// pluginIsAttachable).
type doubt struct {
	volume  VolumeID
	machine string // the machine and boot where it may be mounted; empty: unknown
	boot    string
	orBoot  string // or in this boot of the same machine; empty: none
	listed  bool   // whether the last status named it in use
}

// Doubts says whether the node's list leaves open if a volume is in use there. It counts as in use
// (NodeVolume.InUse).
func (n *Node) Doubts(v VolumeID) bool {
	if n == nil {
		return false
	}
	_, found := n.findDoubt(v)
	return found
}

// DoubtedAt is the systemUUID of the machine and the boot where a volume in doubt may be mounted;
// empty: unknown, or nothing is in doubt.
func (n *Node) DoubtedAt(v VolumeID) (machine, boot string) {
	if n != nil {
		if i, found := n.findDoubt(v); found {
			return n.doubts[i].machine, n.doubts[i].boot
		}
	}
	return "", ""
}

// DoubtedInEither says whether a volume in doubt may be mounted in that boot, or in the boot of its grant.
// The node's next state with a boot of the machine tells.
func (n *Node) DoubtedInEither(v VolumeID) bool {
	if n == nil {
		return false
	}
	i, found := n.findDoubt(v)
	return found && n.doubts[i].orBoot != ""
}

// DoubtedHere says whether a volume in doubt would be mounted at the present machine and in the present
// boot of the Node.
func (n *Node) DoubtedHere(v VolumeID) bool {
	machine, boot := n.DoubtedAt(v)
	return machine != "" && boot != "" && machine == n.SystemUUID && boot == n.BootID
}

// Lists says whether the node's last list names the volume as in use, regardless of doubts.
func (n *Node) Lists(v VolumeID, p *NodeVolume) bool {
	if n != nil {
		if i, found := n.findDoubt(v); found {
			return n.doubts[i].listed
		}
	}
	return p != nil && p.InUse
}

// LeftNaming says whether volumesAttached of a deleted Node named the volume to the end, or the volume was
// taken by force since: the machine may have it mounted, and its attachment has not been seen to go since.
func (n *Node) LeftNaming(v VolumeID) bool { return n != nil && slices.Contains(n.left, v) }

func (n *Node) findDoubt(v VolumeID) (i int, found bool) {
	return slices.BinarySearchFunc(n.doubts, v, func(d doubt, v VolumeID) int { return d.volume.Compare(v) })
}

// doubt begins to count a volume as in use at a node, regardless of the node's list.
func (l *Ledger) doubt(now time.Time, t *Touched, n NodeName, d doubt) {
	l.doubtAll(now, t, n, []doubt{d})
}

// doubtAll is doubt for several volumes of a node, each named once.
func (l *Ledger) doubtAll(now time.Time, t *Touched, n NodeName, list []doubt) {
	rec := l.node(n)
	list = slices.DeleteFunc(list, func(d doubt) bool { return rec.Doubts(d.volume) })
	if len(list) == 0 {
		return
	}
	rec.doubts = append(slices.Clip(rec.doubts), list...)
	slices.SortFunc(rec.doubts, func(a, b doubt) int { return a.volume.Compare(b.volume) })
	for _, d := range list {
		l.changeNodeVolume(now, t, d.volume, n, func(p *NodeVolume) { p.InUse = true })
	}
}

// trust ends the doubt about a volume after its attachment at a node is gone: the kubelet's last list
// decides. A volume that may have been left is still doubted.
func (l *Ledger) trust(now time.Time, t *Touched, n NodeName, v VolumeID) {
	if p := l.facts.volumes.get(v).NodeVolume(n); p != nil && p.Left {
		return
	}
	if listed, doubted := l.undoubt(n, v); doubted {
		l.changeNodeVolume(now, t, v, n, func(p *NodeVolume) { p.InUse = listed })
	}
}

// undoubt ends a doubt, if any, and says whether the list named the volume.
func (l *Ledger) undoubt(n NodeName, v VolumeID) (listed, doubted bool) {
	if !l.facts.nodes.get(n).Doubts(v) {
		return false, false
	}
	rec := l.node(n)
	i, _ := rec.findDoubt(v)
	listed = rec.doubts[i].listed
	rec.doubts = removeAt(rec.doubts, i)
	return listed, true
}

// forgetListed lets a doubt continue without the last list, so that the volume is unused once the doubt
// ends.
func (l *Ledger) forgetListed(n NodeName, v VolumeID) {
	rec := l.node(n)
	i, _ := rec.findDoubt(v)
	rec.doubts = slices.Clone(rec.doubts)
	rec.doubts[i].listed = false
}

// doubtAfter updates a node's doubts for its new state, before the lists of this state are taken in; was is
// the state before. A Node that was made again may be of the same boot until it reports another boot: its
// maker may be no kubelet, and report none. If no kubelet of the name has ever reported a boot, nothing
// shows it.
func (l *Ledger) doubtAfter(now time.Time, t *Touched, was, is *NodeState) {
	rec := l.node(is.Name)
	clone := cloned(was, is)
	if clone {
		rec.machine = OtherMachine
	}
	over := l.facts.bootOver(rec, rec.machine, rec.boot)
	another := rec.machine != "" && is.SystemUUID != "" && rec.machine != is.SystemUUID
	rec.rebooted = rec.rebooted && !another || over
	var ended, lasting []doubt
	for _, d := range rec.doubts {
		if d.machine == is.SystemUUID && clone {
			d.machine = OtherMachine
		}
		d, lasts := l.doubtLasts(rec, d)
		if lasts && !(over && d.orBoot == "" && (d.machine == "" || d.machine == rec.machine)) {
			lasting = append(lasting, d)
		} else {
			ended = append(ended, d)
		}
	}
	rec.doubts = lasting
	for _, d := range ended { // only the list of the last machine of the name tells its use
		l.changeNodeVolume(now, t, d.volume, is.Name, func(p *NodeVolume) { p.InUse = d.listed })
	}
	madeLately := was.UID != is.UID && !l.facts.complete.IsZero()
	if over || madeLately || rec.boot != "" && is.BootID != "" && rec.boot != is.BootID {
		l.wakeTaken(t, is.Name)
	}
	remade := was.UID != "" && was.UID != is.UID
	switch {
	case over && remade:
		l.endReports(now, t, rec)
	case !over && (another || remade):
		l.doubtMadeAgain(now, t, rec)
	}
	rec.left, rec.rebooted = nil, rec.rebooted && !is.Reporting
	if is.BootID != "" {
		rec.boot, rec.machine = is.BootID, is.SystemUUID
	}
}

// doubtLasts says whether a doubt continues with the boots in a node's state, and in which boots the volume
// may be mounted: a machine is in one boot at a time.
func (l *Ledger) doubtLasts(n *Node, d doubt) (doubt, bool) {
	over := l.facts.bootOver(n, d.machine, d.boot)
	switch orOver := l.facts.bootOver(n, d.machine, d.orBoot); {
	case d.orBoot == "":
		return d, !over
	case over:
		d.boot, d.orBoot = d.orBoot, ""
		return d, !orOver
	case orOver:
		d.orBoot = ""
	}
	return d, true
}

// endReports: a Node was made again by another boot. Volumes without attachments that were about to
// enter the former volumesAttached are forgotten: no such write succeeds any more, and that boot's
// mounts have ended. Doubts about other boots stay.
func (l *Ledger) endReports(now time.Time, t *Touched, n *Node) {
	for _, v := range n.At() {
		if p := l.facts.volumes.get(v).NodeVolume(n.Name); p != nil && p.ReportSent && !n.Doubts(v) {
			l.changeNodeVolume(now, t, v, n.Name, func(p *NodeVolume) { p.ReportSent = false })
		}
	}
}

// doubtMadeAgain begins to doubt the volumes attached at a node that was made again, maybe by the same
// boot, or by another machine while the first continues.
func (l *Ledger) doubtMadeAgain(now time.Time, t *Touched, n *Node) {
	at := distinct(slices.Concat(n.At(), n.left)) // the volumes of a deleted Node may have no NodeVolume if nothing else shows them yet
	if len(at) == 0 {
		n.boot, n.machine = "", "" // nothing is left of it
	}
	if n.boot == "" {
		return
	}
	left := setOf(n.left)
	another := n.SystemUUID != "" && n.SystemUUID != n.machine // no kubelet reports a ticket's holder at the first machine
	var list []doubt
	for _, v := range at {
		p := l.facts.volumes.get(v).NodeVolume(n.Name)
		if p == nil {
			p = &NodeVolume{Node: n.Name}
		}
		here := doubt{volume: v, machine: n.machine, boot: n.boot}
		may := p.HasAttachments() || p.Left || p.Held
		named := p.Reported && !p.outlived() || p.ReportSent || left.has(v) || p.Unlisted && another
		if named || n.Lists(v, p) {
			l.doubtBoth(n, v, here)
		}
		if named || p.InUse && may && !n.rebooted {
			list = append(list, here)
			if !p.InUse && p.Proof != (Proof{}) {
				l.changeNodeVolume(now, t, v, n.Name, func(p *NodeVolume) { p.Proof = Proof{} })
			}
		}
	}
	l.doubtAll(now, t, n.Name, list)
}

// outlived says whether the volume is reported here for an attachment that was seen to go, without a
// successor: mounts of that attachment are harmless. An unknown attachment says less: it may be unseen.
func (p *NodeVolume) outlived() bool {
	return p.Lapsed && !p.HasAttachments() && !p.MayBeMounted()
}

// doubtBoth adds a second boot to a volume in doubt: no boot ends both doubts, and no time runs for an
// unknown machine.
func (l *Ledger) doubtBoth(n *Node, v VolumeID, other doubt) {
	i, found := n.findDoubt(v)
	if !found {
		return
	}
	rec := l.node(n.Name)
	rec.doubts = slices.Clone(rec.doubts)
	switch d := &rec.doubts[i]; {
	case d.boot != other.boot || d.machine != other.machine && d.machine != "" && other.machine != "":
		d.machine, d.boot, d.orBoot = OtherMachine, "", ""
	case d.machine == "":
		d.machine = other.machine // one of the two was written before machines were recorded
	}
}

// doubtTakenOut begins to doubt volumes that a Node's new state no longer reports, though they may be in
// use there. Volumes that this process takes out by the kubelet's report are unused; other components took
// out the rest, or force did. Both lists are sorted and taken in, but missing entries still count.
func (l *Ledger) doubtTakenOut(now time.Time, t *Touched, n NodeName, reported, inUse []VolumeID) {
	rec := l.facts.nodes.get(n)
	if rec.reported == len(reported) {
		return
	}
	var list []doubt
	for _, v := range rec.At() {
		p := l.facts.volumes.get(v).NodeVolume(n)
		if _, still := slices.BinarySearchFunc(reported, v, VolumeID.Compare); still || !p.Reported || !p.InUse || !p.MayBeMounted() && !v.NoAttach() {
			continue
		}
		_, listed := slices.BinarySearchFunc(inUse, v, VolumeID.Compare)
		here := doubt{volume: v, machine: rec.machine, boot: rec.boot, listed: listed}
		if listed || rec.Lists(v, p) {
			l.doubtBoth(rec, v, here)
		}
		list = append(list, here)
	}
	l.doubtAll(now, t, n, list)
}

// withDoubted adds the volumes in doubt to a new, sorted list of volumes in use.
func (n *Node) withDoubted(inUse []VolumeID) []VolumeID {
	all := slices.Clip(inUse)
	for _, d := range n.doubts {
		if _, found := slices.BinarySearchFunc(inUse, d.volume, VolumeID.Compare); !found {
			all = append(all, d.volume)
		}
	}
	return all
}

// hear takes in the volumes in doubt that a node's new sorted list names. Their earlier proofs by the
// kubelet's report are void.
func (l *Ledger) hear(now time.Time, t *Touched, n NodeName, inUse []VolumeID) {
	rec := l.node(n)
	if len(rec.doubts) == 0 {
		return
	}
	rec.doubts = slices.Clone(rec.doubts)
	for i := range rec.doubts {
		d := &rec.doubts[i]
		was := d.listed
		if _, d.listed = slices.BinarySearchFunc(inUse, d.volume, VolumeID.Compare); d.listed != was {
			t.volume(d.volume)
		}
		if p := l.facts.volumes.get(d.volume).NodeVolume(n); d.listed && p != nil && !p.Proof.Forced && p.Proof != (Proof{}) {
			l.changeNodeVolume(now, t, d.volume, n, func(p *NodeVolume) { p.Proof = Proof{} })
		}
	}
}

func (HoldsInDoubt) apply(l *Ledger, now time.Time, t *Touched) {
	type at struct {
		volume VolumeID
		node   NodeName
	}
	var fenced, reported []at
	var granted []VolumeID
	type unlisted struct {
		at
		by Requester
	}
	var untold []unlisted // volumes that a ticket has, or had when the node was last Ready
	for v := range l.facts.volumes.all() {
		for i := range v.NodeVolumes {
			if p := &v.NodeVolumes[i]; p.MayBeThere(v.ID) {
				if by, may := v.Hold.ticketAt(p.Node); may {
					untold = append(untold, unlisted{at{v.ID, p.Node}, by})
				}
			}
		}
		if v.Hold == nil {
			continue
		}
		for _, f := range v.Hold.Fences {
			if l.wasReported(v, f) {
				reported = append(reported, at{v.ID, f.Node})
				continue
			}
			// With a rule it is not put back before the hold says that the rule has ended: while the node
			// reports it, it is not taken out yet. But if another machine reports, the rule is about the
			// machine before.
			if p := v.NodeVolume(f.Node); p != nil && (f.Rule == "" || !p.Reported || anotherMachine(l.facts.nodes.get(f.Node), f)) {
				fenced = append(fenced, at{v.ID, f.Node})
			}
		}
		if p := v.NodeVolume(v.Hold.Node); p != nil && p.MayBeMounted() && l.facts.grantedBefore(v.Hold) {
			granted = append(granted, v.ID)
		}
	}
	for _, a := range reported {
		l.changeNodeVolume(now, t, a.volume, a.node, func(p *NodeVolume) { p.ReportSent = true })
	}
	for _, a := range append(fenced, reported...) {
		l.doubtFenced(now, t, a.volume, a.node)
	}
	for _, v := range granted {
		l.doubtGranted(now, t, v)
	}
	for _, u := range untold {
		l.changeNodeVolume(now, t, u.volume, u.node, func(p *NodeVolume) { p.Unlisted, p.had = true, cmp.Or(p.had, &u.by) })
	}
}

// ticketAt is a ticket that may have had the volume at a node when the hold was written. A shared volume's
// hold does not say. The hold has an unknown ticket if it names that node later.
func (h *Hold) ticketAt(n NodeName) (Requester, bool) {
	if h == nil || h.Node != n {
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
	p := v.NodeVolume(f.Node)
	return v.ID.NoAttach() && f.Reported && f.Rule == "" && f.InUse && (p == nil || !p.WithoutAttachment()) &&
		!l.facts.bootOver(l.facts.nodes.get(f.Node), f.SystemUUID, f.BootID)
}

// GrantedBefore says whether, by its hold, a volume was granted for a deleted Node, or for a former machine
// of the Node, in a boot that may last: that boot's kubelet may have the volume mounted without listing it.
// Another machine's kubelet says nothing about the first machine.
func (s Snapshot) GrantedBefore(h *Hold) bool { return s.facts.grantedBefore(h) }

func (w *facts) grantedBefore(h *Hold) bool {
	if h == nil || h.Node == "" || h.NodeUID == "" || h.BootID == "" {
		return false
	}
	n := w.nodes.get(h.Node)
	another := n == nil || !n.Exists || n.UID != h.NodeUID || n.SystemUUID != "" && h.SystemUUID != "" && n.SystemUUID != h.SystemUUID
	return another && !w.bootOver(n, h.SystemUUID, h.BootID)
}

// NodesOfBefore are the nodes for which a hold names another machine or boot than the known one, and the
// node where the volume was left, since another machine may have that name by now (LeftAtAnother).
func (s Snapshot) NodesOfBefore(h *Hold) iter.Seq[NodeName] {
	return func(yield func(NodeName) bool) {
		if h == nil || (h.Stays && h.Node != "" || s.facts.grantedBefore(h) || s.facts.namesAnother(h.Node, h.SystemUUID, h.BootID)) && !yield(h.Node) {
			return
		}
		for _, f := range h.Fences {
			if s.facts.namesAnother(f.Node, f.SystemUUID, f.BootID) && !yield(f.Node) {
				return
			}
		}
	}
}

// namesAnother says whether a node does not exist, or its Node names another boot or machine than this one.
func (w *facts) namesAnother(name NodeName, machine, boot string) bool {
	n := w.nodes.get(name)
	return name != "" && boot != "" && (n == nil || !n.Exists || n.BootID != boot || n.SystemUUID != "" && machine != "" && n.SystemUUID != machine)
}

// doubtGranted begins to doubt the holder's node about a volume granted for a former Node. If the hold also
// says that the volume was taken from that node by force, in another boot, only a third boot of that
// machine ends both doubts; with two machines, no boot.
func (l *Ledger) doubtGranted(now time.Time, t *Touched, v VolumeID) {
	volume := l.facts.volumes.get(v)
	h := volume.Hold
	n, p := l.facts.nodes.get(h.Node), volume.NodeVolume(h.Node)
	if n.Doubts(v) {
		l.doubtEither(n, v, h)
		return
	}
	l.doubt(now, t, h.Node, doubt{volume: v, machine: h.SystemUUID, boot: h.BootID, listed: p.InUse || n == nil || !n.Reporting})
}

// doubtEither adds the boot of the grant to a doubt about a volume at its holder's node.
func (l *Ledger) doubtEither(n *Node, v VolumeID, h *Hold) {
	i, _ := n.findDoubt(v)
	d := n.doubts[i]
	if d.machine == "" || d.machine != h.SystemUUID || d.boot == "" || d.boot == h.BootID || d.orBoot != "" {
		l.doubtBoth(n, v, doubt{machine: h.SystemUUID, boot: h.BootID})
		return
	}
	rec := l.node(n.Name)
	rec.doubts = slices.Clone(rec.doubts)
	rec.doubts[i].orBoot = h.BootID
}

// doubtFenced begins to doubt a node about a volume that its hold says is taken from there by force, if the
// fence's attachment exists, or the volume may have been left there since.
func (l *Ledger) doubtFenced(now time.Time, t *Touched, v VolumeID, n NodeName) {
	volume := l.facts.volumes.get(v)
	if volume == nil {
		return
	}
	f, found := volume.Hold.Fence(n)
	p, node := volume.NodeVolume(n), l.facts.nodes.get(n)
	if !found || !f.InUse || !p.stillMeant(f) {
		return
	}
	machine := f.SystemUUID
	if node != nil && machine == "" && node.UID == f.NodeUID {
		machine = node.SystemUUID // a hold of a release that did not write it
	}
	if l.facts.bootOver(node, machine, f.BootID) || anotherBoot(node, f) && !p.takenAsIs(f) {
		return
	}
	l.doubt(now, t, n, doubt{volume: v, machine: machine, boot: f.BootID, listed: p.InUse || node == nil || !node.Reporting})
}

// anotherBoot says whether a node has another boot than a hold's entry, on the same machine or not.
func anotherBoot(n *Node, f Fence) bool {
	return n != nil && n.Exists && n.BootID != "" && f.BootID != "" && n.BootID != f.BootID
}

// anotherMachine says whether a node names another machine than a hold's entry.
func anotherMachine(n *Node, f Fence) bool {
	return n != nil && n.SystemUUID != "" && f.SystemUUID != "" && n.SystemUUID != f.SystemUUID
}

// takenAsIs says whether a hold's entry about this node is of the present attachment, not of an earlier
// one. Mounts of a former attachment are harmless; only the kubelet of that boot may fail to count the
// volume later.
func (p *NodeVolume) takenAsIs(f Fence) bool {
	return p.Left || p.WithoutAttachment() || f.Reported || p.HasOwn() && p.first.uidText() == f.Attachment
}

// stillMeant says whether a hold's entry about a forced detach is about the volume's present binding to
// this node. Without a rule it is about any attachment there in that boot.
func (p *NodeVolume) stillMeant(f Fence) bool {
	switch {
	case p == nil:
		return false
	case p.Left, f.Reported:
		return true
	case p.WithoutAttachment():
		return f.Attachment == ""
	}
	return p.HasOwn() && (f.Rule == "" || p.first.uidText() == f.Attachment)
}

// doubtAgain begins to doubt a node about a volume that is attached there again, if its hold says that
// force took it from that boot before: an older mount may exist, and the kubelet does not count it.
func (l *Ledger) doubtAgain(now time.Time, t *Touched, v VolumeID, n NodeName) {
	if volume := l.facts.volumes.get(v); volume != nil {
		if f, _ := volume.Hold.Fence(n); f.Rule == "" {
			l.doubtFenced(now, t, v, n)
		}
	}
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
func (p *NodeVolume) MayBeMounted() bool { return p.HasOwn() || p.Left || p.WithoutAttachment() }

// voidForced voids the proofs by force at a node: the rule has ended.
func (l *Ledger) voidForced(now time.Time, t *Touched, n *Node) {
	for _, v := range n.At() {
		if p := l.facts.volumes.get(v).NodeVolume(n.Name); p != nil && p.Proof.Forced {
			l.changeNodeVolume(now, t, v, n.Name, func(p *NodeVolume) { p.Proof = Proof{} })
		}
	}
}
