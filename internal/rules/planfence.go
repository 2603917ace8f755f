// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A volume leaves volumesAttached by force only after its VolumeHold says so (ledger.Fence). It leaves by
// the kubelet's word, or is attached there again, only after the hold no longer says so. The next leader
// therefore knows:
//   - while the attachment exists, that the kubelet may have forgotten the volume;
//   - after its end, that the kubelet's last report no longer counts, and the wait for the node is over;
//   - after a new attach there in the same boot, that an older mount may exist that the kubelet does not
//     count.

// maxFences bounds the fences in a VolumeHold; a further one waits.
const maxFences = 256

// keptFence is the hold's fence for a node, if the outage still lasts.
func keptFence(s ledger.Snapshot, v *ledger.Volume, name ledger.NodeName) (ledger.Fence, bool) {
	f, found := v.Hold.Fence(name)
	n := s.Node(name)
	if !found || f.Rule == "" || ready(n) || attachedAt(v.OnNode(name)) {
		return ledger.Fence{}, false
	}
	return f, sameOutage(outageOf(f), n)
}

// attachedAt says whether the API shows the volume as attached to a node.
func attachedAt(place *ledger.VolumeOnNode) bool {
	return place != nil && (place.HasAttachments() || place.Reported || place.Sent)
}

func outageOf(f ledger.Fence) ledger.Force {
	return ledger.Force{Rule: f.Rule, Node: f.Node, NodeUID: f.NodeUID, Since: f.Since, Renewed: f.Renewed}
}

// fences returns the planned hold's fences for nodes from which the volume is taken by force.
func (p *holdPlan) fences(was, is ledger.Hold) []ledger.Fence {
	before := p.hold
	p.hold = is
	defer func() { p.hold = before }()
	var forced, list []ledger.Fence
	for i := range p.volume.OnNodes {
		f, needed := p.fence(was, &p.volume.OnNodes[i])
		switch {
		case needed && f.Rule != "":
			forced = append(forced, f)
		case needed:
			list = append(list, f)
		}
	}
	for _, old := range was.Fences {
		if p.volume.OnNode(old.Node) != nil {
			continue
		}
		if f, may := p.mountOfBefore(old, nil); may {
			list = append(list, f)
		}
	}
	// The fences that permit the next forced detach come first.
	list = append(forced, list...)
	list = list[:min(len(list), maxFences)]
	slices.SortFunc(list, func(a, b ledger.Fence) int { return cmp.Compare(a.Node, b.Node) })
	return list
}

// fence is an entry about a forced detach, its outage, or a boot with a possible mount.
func (p *holdPlan) fence(was ledger.Hold, place *ledger.VolumeOnNode) (ledger.Fence, bool) {
	f, needed := p.fenceNow(was, place)
	if old, found := was.Fence(place.Node); found && !needed && !p.emptied(place) {
		return p.mountOfBefore(old, place)
	}
	return f, needed
}

// mountOfBefore stays after a forced detach as long as that boot may last: a restarted kubelet never counts
// the older mount. It is omitted if nothing was taken, and in Cooperative mode, where another controller
// attaches and reports.
func (p *holdPlan) mountOfBefore(old ledger.Fence, place *ledger.VolumeOnNode) (ledger.Fence, bool) {
	n := p.snapshot.Node(old.Node)
	if old.SystemUUID == ledger.OtherMachine && n != nil && n.Exists {
		// Only the present machine may get the volume attached again, and fail to count its mounts.
		old.SystemUUID, old.BootID = n.SystemUUID, n.BootID
	}
	sameBoot := n != nil && n.Exists && (n.BootID == "" || n.BootID == old.BootID) && (old.BootID != "" || n.UID == old.NodeUID)
	untouched := !p.Cooperative && place != nil && (place.Reported || place.HasOwn() && p.own(place).UID == old.Attachment)
	if !sameBoot || !old.InUse || old.Rule != "" && untouched {
		return ledger.Fence{}, false
	}
	old.Rule, old.Since, old.Renewed, old.Reported = "", 0, 0, false
	return old, true
}

// fenceNow is the planned entry of a detach in progress, of its outage, or of an unknown volume.
func (p *holdPlan) fenceNow(was ledger.Hold, place *ledger.VolumeOnNode) (ledger.Fence, bool) {
	old, found := was.Fence(place.Node)
	n, va := p.snapshot.Node(place.Node), p.own(place)
	if p.Cooperative {
		// Another controller takes volumes. Taken volumes stay taken, and unknown ones unknown, for the
		// next leader.
		f, kept := p.fenceKept(old, found, n, place)
		switch {
		case kept, old.Reported && place.ReportSent:
			return f, true
		case found && old.Rule == "" && va != nil && (n == nil || !n.Exists):
			return old, true // the same boot may make the Node again
		case !p.grantedBefore(place):
			return f, false
		}
		return p.unknownFence(old, n, place, va)
	}
	switch rule := p.forced(place, va); {
	case rule != "" && found && old.Rule == rule && old.Attachment == uidOf(va) && !outageOver(outageOf(old), n):
		return p.withLease(old, n, place), true
	case rule != "":
		return p.newFence(n, place, va, rule), true
	case va != nil:
		return p.unknownFence(old, n, place, va)
	}
	f, kept := p.fenceKept(old, found, n, place)
	switch {
	case kept:
		return f, true
	case p.isUnknown(place) && (place.Left || p.volume.ID.NoAttach() && !p.leaves(place)):
		return p.unknownFence(old, n, place, va)
	case p.reportedAtGone(n, place):
		return p.reportedFence(old, n, place), true
	}
	return ledger.Fence{}, false
}

// grantedBefore: the grant was for a former Node or machine of its holder's node.
func (p *holdPlan) grantedBefore(place *ledger.VolumeOnNode) bool {
	h := hold(p.volume)
	return h.Node == place.Node && p.snapshot.GrantedBefore(&h)
}

// leaves: a moved volume without need of an attachment is no longer unknown at the old node
// (ledger.moveHeld).
func (p *holdPlan) leaves(place *ledger.VolumeOnNode) bool {
	return place.Held && p.hold.Node != place.Node
}

// reportedAtGone: a deleted Node has, or may have, named the volume in volumesAttached, and did not lose it
// by force.
func (p *holdPlan) reportedAtGone(n *ledger.Node, place *ledger.VolumeOnNode) bool {
	return place.ReportSent && p.hold.Node != place.Node && n != nil && !n.Exists && !force(p.snapshot, p.volume, place, p.now).over()
}

// reportedFence alone tells the next leader that a deleted Node's machine may have the volume mounted. A
// leader that never saw the Node keeps it.
func (p *holdPlan) reportedFence(old ledger.Fence, n *ledger.Node, place *ledger.VolumeOnNode) ledger.Fence {
	if old.Reported && n.UID == "" {
		return old
	}
	return p.newFence(n, place, nil, "")
}

// fenceKept stays after the detach during the outage: the kubelet's last report does not count. For a
// shared volume it stays only if unpublishing made the rule hold: otherwise the volume would be attached
// and taken again.
func (p *holdPlan) fenceKept(old ledger.Fence, found bool, n *ledger.Node, place *ledger.VolumeOnNode) (ledger.Fence, bool) {
	kept := found && old.Rule != "" && !attachedAt(place) && !outageOver(outageOf(old), n)
	return p.withLease(old, n, place), kept && (p.exclusive || byUnpublish(old.Rule)) && !p.wanted(place)
}

// withLease adds the Lease, once read: without it no later leader recognizes the outage.
func (p *holdPlan) withLease(old ledger.Fence, n *ledger.Node, place *ledger.VolumeOnNode) ledger.Fence {
	unread := old.Rule != "" && old.Renewed == 0 && n != nil && n.Exists && old.NodeUID == n.UID && old.Since == n.ReadySince
	if !unread {
		return old
	}
	switch f := force(p.snapshot, p.volume, place, p.now); {
	case f.over():
		old.Renewed = n.Renewed
	case f.Left > 0:
		p.recheck(f.Left)
	}
	return old
}

// unknownFence names the boot in which an unknown volume may be mounted, unless the hold's grant says it.
func (p *holdPlan) unknownFence(old ledger.Fence, n *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) (ledger.Fence, bool) {
	meant := old.Node == place.Node && (old.Attachment == uidOf(va) || place.Left)
	if meant && old.Rule != "" && (va == nil || va.Deleting) && force(p.snapshot, p.volume, place, p.now).over() {
		return old, true // the attacher's turn
	}
	boots := p.snapshot.Unknown(p.volume, place)
	untold := boots
	if p.hold.Node == place.Node && p.snapshot.GrantedBefore(&p.hold) {
		untold = slices.DeleteFunc(slices.Clone(boots), func(b ledger.Boot) bool { return b == p.hold.Boot() })
	}
	switch {
	case len(boots) == 0, p.emptied(place), p.grantedAnew(place), len(untold) == 0 && !meant:
		return ledger.Fence{}, false
	case len(untold) > 0:
		boots = untold
	}
	f := p.entry(n, place, va, "")
	f.InUse, f.Since, f.Renewed = true, 0, 0
	if meant {
		f.Attachment = cmp.Or(f.Attachment, old.Attachment)
	}
	f = inBoots(f, boots)
	if old.Node == f.Node && old.Boot() == f.Boot() {
		f.NodeUID = old.NodeUID
	}
	return f, true
}

// entry is about the present Node; for a Node never seen, about the grant's.
func (p *holdPlan) entry(n *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment, rule string) ledger.Fence {
	f := ledger.Fence{Node: place.Node, Attachment: uidOf(va), Rule: rule}
	f.Reported = p.volume.ID.NoAttach() && rule == "" && p.hold.Node != place.Node
	f.InUse = place.MayBeInUse() || n == nil || !n.Reporting
	if h := hold(p.volume); h.Node == place.Node {
		f.NodeUID, f.BootID, f.SystemUUID = h.NodeUID, h.BootID, h.SystemUUID
	}
	if n != nil && n.UID != "" {
		f.NodeUID, f.BootID, f.SystemUUID = n.UID, n.BootID, n.SystemUUID
		if n.Exists {
			f.Since, f.Renewed = n.ReadySince, n.Renewed
		}
	}
	return f
}

// newFence begins a detach. It names the boot of an unknown volume's possible mount.
func (p *holdPlan) newFence(n *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment, rule string) ledger.Fence {
	f := p.entry(n, place, va, rule)
	boots := p.snapshot.Unknown(p.volume, place)
	if len(boots) == 0 {
		return f
	}
	f.InUse = true
	if ready(n) { // this Node's outages are not the first machine's
		f.Since, f.Renewed = 0, 0
	} else if place.Reported && place.InUse {
		boots = append(slices.Clip(boots), n.Boot())
	}
	return inBoots(f, boots)
}

// inBoots writes the boot of a possible mount into an entry.
func inBoots(f ledger.Fence, boots []ledger.Boot) ledger.Fence {
	f.SystemUUID, f.BootID = boots[0].SystemUUID, boots[0].BootID
	for _, b := range boots {
		if b != boots[0] {
			f.BootID = "" // no boot ends that
		}
		if b.SystemUUID != boots[0].SystemUUID {
			f.SystemUUID = ledger.OtherMachine
		}
	}
	return f
}

// forced is empty without a rule of force.
func (p *holdPlan) forced(place *ledger.VolumeOnNode, va *ledger.Attachment) string {
	if place.Sent && !place.HasOwn() || va == nil && !place.Reported || va != nil && va.Deleting && !place.Reported {
		return ""
	}
	verdict, rule := p.safeToDetach(p.snapshot, p.volume, place, va, p.now)
	if !verdict.Allowed() {
		return ""
	}
	return rule
}

// fenceWritten: the written hold must have a detach step's rule of force, or nothing if there is none.
// Without an attachment it may tell of an older mount, of a shared volume or at its holder's node.
func (p *holdPlan) fenceWritten(place *ledger.VolumeOnNode, va *ledger.Attachment, rule string) bool {
	written := p.volume.Written()
	f, found := written.Fence(place.Node)
	found = found && written.Version != ""
	if rule == "" || !attachedAt(place) {
		before := va == nil && f.Rule == "" && (!p.exclusive || p.hold.Node == place.Node)
		return rule != "" || !found || before || f.Attachment != uidOf(va)
	}
	return found && f.Rule == rule && f.Attachment == uidOf(va)
}

// keptByFence: the hold keeps an exclusive volume without need of an attachment at another node. A live
// migration had it there in a boot from which it was once taken by force.
func keptByFence(s ledger.Snapshot, v *ledger.Volume, place *ledger.VolumeOnNode) bool {
	f, found := v.Hold.Fence(place.Node)
	return found && f.Rule == "" && v.ID.NoAttach() && place.Reported && v.Hold.Node != place.Node && exclusive(access(s, v, v.Access))
}

func uidOf(va *ledger.Attachment) string {
	if va == nil {
		return ""
	}
	return va.UID
}
