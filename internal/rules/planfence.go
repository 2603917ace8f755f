// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A volume is taken out of volumesAttached by force only after its VolumeHold says so
// (ledger.Fence), and is taken out by the kubelet's word, or attached there anew, only
// after the hold says nothing of it any more. So whoever leads next knows:
//   - while the attachment is there, that the kubelet may have forgotten the volume;
//   - when it has gone, that what that kubelet said last counts no more, and nobody
//     waits a second time for the node;
//   - when the volume is attached there anew in the same boot, that a mount of before may
//     be there, which the kubelet does not count.

// maxFences bounds the fences that a VolumeHold lists. What finds no room waits.
const maxFences = 256

// keptFence is what the hold says of a volume that is gone from a node by force, if
// the outage has lasted ever since.
func keptFence(s ledger.Snapshot, v *ledger.Volume, name ledger.NodeName) (ledger.Fence, bool) {
	f, found := v.Hold.Fence(name)
	n := s.Node(name)
	if !found || f.Rule == "" || ready(n) || attachedAt(v.NodeVolume(name)) {
		return ledger.Fence{}, false
	}
	return f, sameOutage(outageOf(f), n)
}

// attachedAt says whether the volume is attached to a node, as far as the API says.
func attachedAt(place *ledger.NodeVolume) bool {
	return place != nil && (place.HasAttachments() || place.Reported || place.Sent)
}

// outageOf is the outage in which a volume was taken by force.
func outageOf(f ledger.Fence) ledger.Force {
	return ledger.Force{Rule: f.Rule, Node: f.Node, NodeUID: f.NodeUID, Since: f.Since, Renewed: f.Renewed}
}

// fences is what the hold is to say of nodes from which the volume is taken by force,
// given the hold otherwise.
func (p *planner) fences(was, is ledger.Hold) []ledger.Fence {
	before := p.hold
	p.hold = is
	defer func() { p.hold = before }()
	var forced, list []ledger.Fence
	for i := range p.volume.NodeVolumes {
		f, needed := p.fence(was, &p.volume.NodeVolumes[i])
		switch {
		case needed && f.Rule != "":
			forced = append(forced, f)
		case needed:
			list = append(list, f)
		}
	}
	for _, old := range was.Fences {
		if p.volume.NodeVolume(old.Node) != nil {
			continue
		}
		if f, may := p.mountOfBefore(old, nil); may {
			list = append(list, f)
		}
	}
	// Where there is no room for all, those are listed without which nothing is taken.
	list = append(forced, list...)
	list = list[:min(len(list), maxFences)]
	slices.SortFunc(list, func(a, b ledger.Fence) int { return cmp.Compare(a.Node, b.Node) })
	return list
}

// fence is what the hold is to say of one node.
func (p *planner) fence(was ledger.Hold, place *ledger.NodeVolume) (ledger.Fence, bool) {
	f, needed := p.fenceNow(was, place)
	if old, found := was.Fence(place.Node); found && !needed && !p.disproved(old, place) {
		return p.mountOfBefore(old, place)
	}
	return f, needed
}

// disproved says whether the doubt of which the hold tells is over, though the attachment that it
// is about is there, and the boot lasts: moorage-node has looked.
func (p *planner) disproved(old ledger.Fence, place *ledger.NodeVolume) bool {
	n, va := p.snapshot.Node(place.Node), p.own(place)
	return !p.Cooperative && old.Rule == "" && va != nil && va.UID == old.Attachment && n != nil && n.Exists && !n.Doubts(p.volume.ID)
}

// mountOfBefore is what the hold goes on to say of a node, after the volume was taken
// from it by force: whether a mount of before may be there, as long as that boot of the
// machine may last. Its kubelet does not tell: one that has restarted meanwhile never
// counts such a mount. It matters when the volume is attached there anew. Where nothing
// was taken before the rule ended, there is nothing to say; in Cooperative mode nobody knows
// that, since what is attached and reported there is another controller's doing.
func (p *planner) mountOfBefore(old ledger.Fence, place *ledger.NodeVolume) (ledger.Fence, bool) {
	n := p.snapshot.Node(old.Node)
	if old.SystemUUID == ledger.OtherMachine && n != nil && n.Exists && n.UID == old.NodeUID {
		// Of the machines that are meant only the one that has the Node may have the volume attached anew, and
		// may not count what it has mounted.
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

// fenceNow is what the hold is to say of a detach that is under way, or of the outage in
// which it was carried out.
func (p *planner) fenceNow(was ledger.Hold, place *ledger.NodeVolume) (ledger.Fence, bool) {
	old, found := was.Fence(place.Node)
	n, va := p.snapshot.Node(place.Node), p.own(place)
	if p.Cooperative {
		// Volumes are another controller's to take. What was taken before stays taken, and what
		// was doubted is doubted by the next leader, too.
		f, kept := p.fenceKept(old, found, n, place)
		switch {
		case kept, old.Reported && place.ReportSent:
			return f, true
		case found && old.Rule == "" && va != nil && (n == nil || !n.Exists):
			return old, true // the same boot may make the Node again
		case !p.snapshot.GrantedBefore(p.volume.Hold) || p.volume.Hold.Node != place.Node:
			return f, false
		}
		return p.doubtedFence(old, n, place, va)
	}
	switch rule := p.forced(place, va); {
	case rule != "" && found && old.Rule == rule && old.Attachment == uidOf(va) && !outageOver(outageOf(old), n):
		return p.withLease(old, n, place), true
	case rule != "":
		return p.newFence(n, place, va, rule), true
	case va != nil, n.Doubts(p.volume.ID) && (place.Left || p.volume.ID.NoAttach() && !p.leaves(place)):
		return p.doubtedFence(old, n, place, va)
	}
	f, kept := p.fenceKept(old, found, n, place)
	if kept || !p.reportedAtGone(n, place) {
		return f, kept
	}
	return p.reportedFence(old, n, place), true
}

// leaves says whether a volume that needs no attachment is given to another node than the one that the hold, as written,
// gives it to: the doubt about that one ends with it (ledger.moveHeld).
func (p *planner) leaves(place *ledger.NodeVolume) bool {
	return place.Held && p.hold.Node != place.Node
}

// reportedAtGone says whether a Node that is gone named the volume in volumesAttached, or was to, and neither is the
// volume its holder's nor does a rule of force say that it has lost it.
func (p *planner) reportedAtGone(n *ledger.Node, place *ledger.NodeVolume) bool {
	return place.ReportSent && p.hold.Node != place.Node && n != nil && !n.Exists && !force(p.snapshot, p.volume, place, p.now).over()
}

// reportedFence is what the hold is to say of such a Node: nothing else tells the next leader that the machine may have
// the volume mounted. A leader that has never seen the Node goes on to say what the hold says.
func (p *planner) reportedFence(old ledger.Fence, n *ledger.Node, place *ledger.NodeVolume) ledger.Fence {
	if old.Reported && n.UID == "" {
		return old
	}
	return p.newFence(n, place, nil, "")
}

// fenceKept is what the hold goes on to say of an outage in which the volume was detached:
// what the kubelet said last counts no more, until the volume comes back. Of a shared volume,
// which nobody else waits for, it says so where the rule holds only because the volume was
// unpublished: without that it would be attached there again, and taken again.
func (p *planner) fenceKept(old ledger.Fence, found bool, n *ledger.Node, place *ledger.NodeVolume) (ledger.Fence, bool) {
	kept := found && old.Rule != "" && !attachedAt(place) && !outageOver(outageOf(old), n)
	return p.withLease(old, n, place), kept && (p.exclusive || byUnpublish(old.Rule)) && !p.wanted(place)
}

// withLease is what a hold says of a node from which the volume was taken before anybody
// had read the Lease, completed by the Lease as soon as it is read, if a rule of force
// is over at that time, too: without the Lease no later leader knows the outage again.
func (p *planner) withLease(old ledger.Fence, n *ledger.Node, place *ledger.NodeVolume) ledger.Fence {
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

// doubtedFence is what the hold is to say of an attachment that no rule of force takes
// now: that the kubelet may have forgotten it, in which boot of which machine. It need not where
// the hold's holder says the same.
func (p *planner) doubtedFence(old ledger.Fence, n *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment) (ledger.Fence, bool) {
	meant := old.Node == place.Node && (old.Attachment == uidOf(va) || place.Left)
	machine, boot := n.DoubtedAt(p.volume.ID)
	if p.hold.Node != place.Node && n.DoubtedInEither(p.volume.ID) {
		machine, boot = ledger.OtherMachine, "" // the hold does not tell of the other boot any more
	}
	switch {
	case meant && old.Rule != "" && (va == nil || va.Deleting) && force(p.snapshot, p.volume, place, p.now).over():
		return old, true // the attacher's turn
	case !n.Doubts(p.volume.ID):
		return ledger.Fence{}, false
	case p.hold.Node == place.Node && p.hold.SystemUUID == machine && p.hold.BootID == boot && !meant && p.snapshot.GrantedBefore(&p.hold):
		return ledger.Fence{}, false
	}
	f := p.newFence(n, place, va, "")
	if meant {
		f.Attachment = cmp.Or(f.Attachment, old.Attachment)
	}
	f.Since, f.Renewed = 0, 0
	switch {
	case machine != "" || boot != "":
		f.SystemUUID, f.BootID = machine, boot
		f.NodeUID = p.nodeOf(old, n, machine, boot)
	case meant:
		f.NodeUID, f.BootID, f.SystemUUID = old.NodeUID, old.BootID, old.SystemUUID
	}
	return f, true
}

// nodeOf is the UID of the Node by which a machine was known in a boot, as far as what the hold says
// of it already, the Node that there is, or the hold's holder tells; empty: not known. Of several machines it is
// the Node that there is (mountOfBefore).
func (p *planner) nodeOf(old ledger.Fence, n *ledger.Node, machine, boot string) string {
	h := hold(p.volume)
	switch {
	case machine == ledger.OtherMachine && n.UID != "":
		return n.UID
	case old.Node == n.Name && old.SystemUUID == machine && old.BootID == boot:
		return old.NodeUID
	case n.UID != "" && n.SystemUUID == machine && n.BootID == boot:
		return n.UID
	case h.Node == n.Name && h.SystemUUID == machine && h.BootID == boot:
		return h.NodeUID
	}
	return ""
}

func (p *planner) newFence(n *ledger.Node, place *ledger.NodeVolume, va *ledger.Attachment, rule string) ledger.Fence {
	f := ledger.Fence{Node: place.Node, Attachment: uidOf(va), Rule: rule}
	f.Reported = p.volume.ID.NoAttach() && rule == "" && p.hold.Node != place.Node
	f.InUse = place.InUse || n == nil || !n.Reporting
	if h := hold(p.volume); h.Node == place.Node {
		f.NodeUID, f.BootID, f.SystemUUID = h.NodeUID, h.BootID, h.SystemUUID
	}
	if n != nil && n.UID != "" {
		f.NodeUID, f.BootID, f.SystemUUID = n.UID, n.BootID, n.SystemUUID
		if n.Exists {
			f.Since, f.Renewed = n.ReadySince, n.Renewed
		}
	}
	machine, boot := n.DoubtedAt(p.volume.ID)
	if n.DoubtedInEither(p.volume.ID) {
		machine, boot = ledger.OtherMachine, "" // the hold names one of the two boots, and may name another node once the volume has left
	}
	if rule != "" && !ready(n) && machine != "" && (machine != f.SystemUUID || boot != f.BootID) {
		// The outage is that of the machine which has the Node; the volume may be mounted at the one before, or in another boot.
		if n.LeftNaming(p.volume.ID) || place.Reported && n.Lists(p.volume.ID, place) {
			machine, boot = ledger.OtherMachine, "" // or at both: no boot ends that
		}
		f.SystemUUID, f.BootID, f.InUse = machine, boot, true
	}
	if rule != "" && ready(n) && ofAnotherMachine(n, p.volume, place) {
		// What that one's Node says of its outages is not about the first one.
		f.Since, f.Renewed, f.InUse = 0, 0, true
		f.SystemUUID, f.BootID = doubtedAt(n, p.volume, place)
		f.NodeUID = p.nodeOf(ledger.Fence{}, n, f.SystemUUID, f.BootID)
	}
	return f
}

// forced is the rule of force by which the volume is to be taken out of
// volumesAttached of a node, or its attachment to be deleted; empty: none.
func (p *planner) forced(place *ledger.NodeVolume, va *ledger.Attachment) string {
	if place.Sent && !place.HasOwn() || va == nil && !place.Reported || va != nil && va.Deleting && !place.Reported {
		return ""
	}
	verdict, rule := p.safeToDetach(p.snapshot, p.volume, place, va, p.now)
	if !verdict.Allowed() {
		return ""
	}
	return rule
}

// fenceWritten says whether the hold, as the API has it, says what a step of a detach
// asks for: the rule of force by which it is taken, or nothing. Where there is no attachment it may go on to
// say that a mount of before may be there, since nothing tells that one from what is there now: of a shared volume,
// and of one at its holder's node, which is doubted where that matters (Doubted).
func (p *planner) fenceWritten(place *ledger.NodeVolume, va *ledger.Attachment, rule string) bool {
	f, found := p.volume.Hold.Fence(place.Node)
	found = found && p.volume.Hold.Version != "" && p.volume.Hold.Version != p.volume.Dropped()
	if rule == "" || !attachedAt(place) {
		before := va == nil && f.Rule == "" && (!p.exclusive || p.hold.Node == place.Node)
		return rule != "" || !found || before || f.Attachment != uidOf(va)
	}
	return found && f.Rule == rule && f.Attachment == uidOf(va)
}

// keptByFence says whether it is for what the hold says that an exclusive volume which needs no attachment stays at a
// node that is not its holder's (fenceWritten): a live migration had it there, in a boot from which it was taken by
// force before.
func keptByFence(s ledger.Snapshot, v *ledger.Volume, place *ledger.NodeVolume) bool {
	f, found := v.Hold.Fence(place.Node)
	return found && f.Rule == "" && v.ID.NoAttach() && place.Reported && v.Hold.Node != place.Node && exclusive(access(s, v, v.Access))
}

func uidOf(va *ledger.Attachment) string {
	if va == nil {
		return ""
	}
	return va.UID
}
