// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// attachPlan brings a volume to its holder's node.
type attachPlan struct{ detachPlan }

// acquire plans the next step that brings the volume to a node that wants it.
func (p *attachPlan) acquire(place *ledger.VolumeOnNode) {
	node := p.snapshot.Node(place.Node)
	va := p.own(place)
	switch {
	case !p.Cooperative && bars(p.snapshot, p.volume, place) && !replaced(node, va):
		p.takeBack(node, place)
	case p.volume.ID.NoAttach():
		if !place.Reported && p.mayReport(node) && p.granted(place.Node) && len(p.elsewhere(place.Node, p.hold.Node)) == 0 {
			p.report(node, place, nil)
		}
	case va != nil && va.Attached && !va.Deleting:
		if !place.Reported && p.mayReport(node) && !replaced(node, va) {
			p.report(node, place, va)
		}
	case p.stale(place):
		// The report is older than the attachment's end: a kubelet that relies on it fails, and retries
		// after up to two minutes.
		p.retract(node, place, va)
	case va == nil && p.mayCreate(node, place) && p.gone(place):
		p.create(node, place)
	case va != nil && va.Deleting:
		p.askToStay(place)
	case p.outdated(node, place, va):
		step := p.detachStep(node, place, va, "")
		step.Kind, step.Urgent = DeleteAttachment, true
		p.add(step)
	case p.mayRetry(node, place, va):
		p.add(Step{Kind: RetryAttach, Node: place.Node, Attachment: va.Name, UID: va.UID, Version: va.Version})
	}
}

func (p *attachPlan) retract(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) {
	step := Step{Kind: Unreport, Node: place.Node, NodeUID: node.UID, NodeVersion: node.Version, Urgent: true}
	if va != nil {
		step.Attachment, step.UID, step.Version = va.Name, va.UID, va.Version
	}
	p.add(step)
}

// stale says whether a VolumeOnNode is reported without an attachment, and is provably unused.
func (p *attachPlan) stale(place *ledger.VolumeOnNode) bool {
	if !place.Reported || p.Cooperative {
		return false
	}
	verdict, rule := p.safeToDetach(p.snapshot, p.volume, place, p.own(place), p.now)
	return verdict.Allowed() && rule == "" // the kubelet's own word
}

// replaced: the driver names the node differently since the attachment (CSINode, nodeID). Attachers detach
// by the present name, and report the unfound volume as detached (external-attacher, getNodeID).
func replaced(n *ledger.Node, va *ledger.Attachment) bool {
	if n == nil || va == nil || va.NodeID == "" {
		return false
	}
	d := n.Driver(va.Driver)
	return d.Registered && d.NodeID != "" && d.NodeID != va.NodeID
}

// volumeReplaced: the attachment's PersistentVolume was made again for another disk. Attachers find the
// disk only by that name (external-attacher, csiDetach).
func volumeReplaced(s ledger.Snapshot, v ledger.VolumeID, va *ledger.Attachment) bool {
	if va == nil {
		return false
	}
	pv := s.PersistentVolume(va.PersistentVolume)
	return pv != nil && pv.Volume != v
}

// otherVolumesAttachment has this volume's PersistentVolume: at its end the attacher detaches this volume.
// Empty: none.
func (p *attachPlan) otherVolumesAttachment(n *ledger.Node) string {
	source := p.source()
	if source == "" {
		return ""
	}
	for _, id := range n.At() {
		if id == p.volume.ID {
			continue
		}
		if name := p.snapshot.Volume(id).OnNode(n.Name).AttachedFor(source); name != "" {
			return name
		}
	}
	return ""
}

func managed(n *ledger.Node) bool { return n != nil && n.Exists && n.Managed }

// mayCreate says whether a new attachment is allowed: the hold is written, the volume is nowhere else, and
// the driver can attach there.
func (p *attachPlan) mayCreate(node *ledger.Node, place *ledger.VolumeOnNode) bool {
	// A rule of force in the hold is about an earlier attachment: first the hold says that it has ended.
	return p.startable(place) && p.granted(place.Node) && !p.saysRule(place) && !p.namesFormer(node) && len(p.blockers(node, place)) == 0
}

// namesFormer: the written hold names another machine or Node. A new attachment would count as that
// machine's.
func (p *attachPlan) namesFormer(node *ledger.Node) bool {
	h := hold(p.volume)
	if node != nil && h.Node == node.Name && p.hold.NodeUID == node.UID && p.snapshot.GrantedBefore(&h) {
		return true
	}
	return node != nil && h.Node == node.Name && h.SystemUUID != "" && node.SystemUUID != "" && h.SystemUUID != node.SystemUUID &&
		p.hold.SystemUUID == node.SystemUUID
}

// mayRetry says, once for each attachment, whether to retry an attach that another controller began too
// early: its attacher may pause for minutes.
func (p *attachPlan) mayRetry(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) bool {
	return place.AttachFailed() && !va.Ours && !va.Confirmed && !replaced(node, va) && p.mayCreate(node, place)
}

// outdated: an attach failed and will always fail for its PersistentVolume, and there is another source.
// The attachment is made again.
//
// This takes nothing from the node: an attachment keeps the status attached to its end, and this attachment
// never had it. Without a finalizer the driver never had it. An attacher that has begun detaches first, by
// the PersistentVolume, which must still exist.
func (p *attachPlan) outdated(node *ledger.Node, place *ledger.VolumeOnNode, va *ledger.Attachment) bool {
	if !place.AttachFailed() || va.PersistentVolume == "" || p.Cooperative && !va.Ours {
		return false
	}
	pv := p.snapshot.PersistentVolume(va.PersistentVolume)
	mine := pv != nil && pv.Volume == p.volume.ID
	switch {
	case mine && !pv.Deleting, va.Stamped && (!mine || replaced(node, va)):
		return false
	case place.Reported, p.isUnknown(place), node.SaysHas(p.volume.ID):
		return false // an earlier attachment may have it mounted
	}
	return p.lasts() && p.mayCreate(node, place)
}

// granted: an exclusive volume needs a node by its VolumeHold, or by the plan if it needs none. A volume
// that pods share is free only if the hold names no node (keptByHold).
func (p *attachPlan) granted(n ledger.NodeName) bool {
	if !p.exclusive {
		return !p.volume.OnlyInline() || hold(p.volume).Node == ""
	}
	if h := p.volume.Written(); h.Version != "" {
		return h.Node == n || p.migrationWritten(p.volume.OnNode(n))
	}
	return p.hold.Node == n && p.volume.HoldUnanswered == 0 && !p.needsHold(&p.hold)
}

// startable says whether a user at a node needs an attachment there, and stays.
func (p *attachPlan) startable(place *ledger.VolumeOnNode) bool {
	return slices.ContainsFunc(place.Users, func(u ledger.User) bool { return claimStateOf(p.snapshot, u) == active })
}

// blockers lists the reasons against a new attachment at a node.
func (p *attachPlan) blockers(node *ledger.Node, place *ledger.VolumeOnNode) []Reason {
	reason := Reason{Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node, Driver: p.volume.ID.Driver}
	switch {
	case node == nil || !node.Exists:
		reason.Code = NodeMissing
	case !node.Managed:
		reason.Code = NodeUnmanaged
	case !node.Driver(p.volume.ID.Driver).Registered:
		reason.Code = DriverNotRegistered
	case p.volume.Hold.LeftAtAnother(node):
		reason.Code, reason.Detail, reason.Left = NodeReplaced, p.volume.Hold.SystemUUID, true
	case len(p.volume.PVs()) == 0 && !p.inline():
		reason.Code = ClaimLost
	default:
		if name := p.otherVolumesAttachment(node); name != "" {
			reason.Code, reason.Detail = VolumeReplaced, name
		} else if others := p.elsewhere(place.Node, p.hold.Node); len(others) > 0 {
			return others
		} else {
			return p.noSlot(node, place)
		}
	}
	return []Reason{reason}
}

// source is empty for an inline volume. If the only PersistentVolume is being deleted, its attacher may
// attach it.
func (p *attachPlan) source() string {
	pv := source(p.snapshot, p.volume)
	if pv == nil || pv.Deleting && p.inline() {
		return ""
	}
	return pv.Name
}

// source prefers a PersistentVolume that is not being deleted, then a claimed one; nil: none.
func source(s ledger.Snapshot, v *ledger.Volume) *ledger.PersistentVolume {
	if v == nil {
		return nil
	}
	var best *ledger.PersistentVolume
	for _, name := range v.PVs() {
		pv := s.PersistentVolume(name)
		switch {
		case pv == nil:
		case best == nil, best.Deleting && !pv.Deleting, best.Deleting == pv.Deleting && best.Claim.Name == "" && pv.Claim.Name != "":
			best = pv
		}
	}
	return best
}

func (p *attachPlan) create(node *ledger.Node, place *ledger.VolumeOnNode) {
	p.add(Step{
		Kind: CreateAttachment, Node: place.Node, Beside: p.beside(place), Cooperative: p.Cooperative && !place.UsedByPod(),
		Attachment:  ledger.AttachmentName(p.volume.ID, place.Node),
		PV:          p.source(),
		NodeID:      node.Driver(p.volume.ID.Driver).NodeID,
		Transitions: p.hold.Transitions,
		Note:        p.noteOf(node, place),
		Limit:       p.slotLimit(node, place),
	})
}

// noteOf is zero if there is a VolumeHold with the same facts: if a person deletes it, it is written again.
func (p *attachPlan) noteOf(node *ledger.Node, place *ledger.VolumeOnNode) ledger.Note {
	if !p.exclusive || p.volume.Written().Version != "" {
		return ledger.Note{}
	}
	note := ledger.Note{NodeUID: node.UID, Boot: node.Boot()}
	for _, u := range place.Users {
		if claimStateOf(p.snapshot, u) == active && (note.Pod == "" || u.Pod != "" && u.Pod < note.Pod) {
			note.Pod = u.Pod
		}
	}
	return note
}

// beside is a live migration's other node, where the volume may be too; empty: none.
func (p *attachPlan) beside(place *ledger.VolumeOnNode) ledger.NodeName {
	if p.hold.Node != place.Node {
		return p.hold.Node // a shared volume has none
	}
	if !p.hold.Stays {
		return ""
	}
	for i := range p.volume.OnNodes { // a volume left at the source node is attached again
		if target := &p.volume.OnNodes[i]; target.Node != place.Node && p.migratesTo(target) {
			return target.Node
		}
	}
	return ""
}

// find reads after an unanswered creation, even if an attachment of that name is seen: another actor may
// have made it.
func (p *attachPlan) find(place *ledger.VolumeOnNode) {
	p.add(Step{Kind: FindAttachment, Node: place.Node, Attachment: ledger.AttachmentName(p.volume.ID, place.Node)})
}

// stuckAt is Detaching if nothing keeps the volume at its node.
func stuckAt(a Arbiter, s ledger.Snapshot, v *ledger.Volume, place *ledger.VolumeOnNode, now time.Time) Reason {
	reason := Reason{Code: Detaching, Volume: v.ID, Claim: claimOf(s, v), Node: place.Node}
	va := place.Canonical()
	switch {
	case place.Node == ledger.Detached:
		return a.planner(s, v, now).staysDetached(reason)
	case foreign(place):
		reason.Code, reason.Detail = ForeignAttachment, va.Name
	case replaced(s.Node(place.Node), va) && !va.Deleting:
		reason.Code, reason.Detail = NodeReplaced, va.NodeID
	case volumeReplaced(s, v.ID, va) && !va.Deleting:
		reason.Code, reason.Detail = VolumeReplaced, va.Name
	case va != nil && va.Deleting:
		if !va.DetachError.IsZero() {
			reason.Code, reason.Detail, reason.GRPC = DetachFailed, va.DetachError.Message, va.DetachError.Code
			return reason
		}
		return unanswered(s, v, place, va, now, reason)
	case v.Hold != nil && v.Hold.Stays && v.Hold.Node == place.Node && place.AttachFailed():
		return failedAttach(s, v, va) // attachedAnew: it is attached first, then detached
	case !unused(s, place) && !fenced(s, v, place.Node, now):
		return stillUsed(s, v, place, now, reason)
	default:
		if verdict, _ := a.SafeToDetach(s, v, place, now); !verdict.Allowed() {
			return verdict.First()
		}
		if keptByFence(s, v, place) {
			reason.Code, reason.Detail = InUseUnknown, forgetfulTaken
		}
	}
	return reason
}

// detachPatience is a driver's time for a detach before that is reported. Attachers report their timeout
// earlier (external-attacher, --timeout, 15 s).
const detachPatience = time.Minute

// unanswered completes the reason of a detach beyond detachPatience. A finalizer may also keep the
// VolumeAttachment. A report in the hold stays.
func unanswered(s ledger.Snapshot, v *ledger.Volume, place *ledger.VolumeOnNode, va *ledger.Attachment, now time.Time, reason Reason) Reason {
	lasting := reason
	lasting.Code, lasting.Driver, lasting.Since = DetachUnanswered, v.ID.Driver, va.DeletedAt
	if va.KeptBy != "" {
		lasting.Code, lasting.Detail = KeptByFinalizer, va.KeptBy
	}
	told := v.Hold != nil && v.Hold.Reason == lasting.Code && v.Hold.Message == lasting.Message()
	if since, leaving := s.Leaving(place); told || leaving && now.Sub(since) >= detachPatience {
		return lasting
	}
	return reason
}

// stillUsed names the first user by name, so that all controllers write the same.
func stillUsed(s ledger.Snapshot, v *ledger.Volume, place *ledger.VolumeOnNode, now time.Time, reason Reason) Reason {
	for _, u := range place.Users {
		if who := requester(s, u); claimStateOf(s, u) == active && (reason.Code != HeldElsewhere || compareRequesters(who, reason.Who) < 0) {
			reason.Code, reason.Who, reason.Until = HeldElsewhere, who, yieldsBy(s.Ticket(u.Ticket))
		}
	}
	if reason.Code == HeldElsewhere {
		return reason
	}
	reason.Code = InUse
	if !ready(s.Node(place.Node)) {
		reason = unreachableAt(reason, s.Node(place.Node), force(s, v, place, now))
	}
	return reason
}

// migrationWritten: the next leader knows from the hold why the volume is at two nodes.
func (p *attachPlan) migrationWritten(place *ledger.VolumeOnNode) bool {
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return migrating(p.snapshot, p.volume, u) && namedInHold(p.snapshot, p.volume, u)
	})
}

// gone says whether the attach/detach controller has seen the end of the last attachment at a node.
func (p *attachPlan) gone(place *ledger.VolumeOnNode) bool {
	at, left := p.volume.Left(place.Node)
	if !p.Cooperative || !left || p.now.Sub(at) >= otherLook {
		return true
	}
	p.recheck(otherLook - p.now.Sub(at))
	return false
}
