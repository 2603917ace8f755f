// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// unused ignores never granted tickets.
func unused(s ledger.Snapshot, p *ledger.VolumeOnNode) bool {
	for _, u := range p.Users {
		if claimStateOf(s, u) >= terminating {
			return false
		}
	}
	return true
}

// SafeToDetach says whether the volume may leave a node that no longer wants it, and by which rule of
// force; none if the kubelet's word is enough. Allow does not permit the deletion of the VolumeAttachment
// yet: the steps of Plan first prove it against the API.
func (a Arbiter) SafeToDetach(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, now time.Time) (Verdict, string) {
	return a.safeToDetach(s, v, p, p.Own(), now)
}

// safeToDetach is SafeToDetach with a known own attachment.
func (a Arbiter) safeToDetach(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, va *ledger.Attachment, now time.Time) (Verdict, string) {
	n := s.Node(p.Node)
	reason := Reason{Volume: v.ID, Claim: claimOf(s, v), Node: p.Node}
	if n != nil && n.Exists && !n.Managed {
		reason.Code = NodeUnmanaged
		return refuse([]Reason{reason}), ""
	}
	if replaced(n, va) {
		reason.Code, reason.Detail = NodeReplaced, va.NodeID
		return refuse([]Reason{reason}), ""
	} else if volumeReplaced(s, v.ID, va) {
		reason.Code, reason.Detail = VolumeReplaced, va.Name
		return refuse([]Reason{reason}), ""
	}
	e := a.evidenceOf(s, v, p, now)
	switch {
	case e.usage == usageFenced:
		return allow(), e.rule.Rule
	case e.usage == usageNone && !a.unsaid(s, v, p, now):
		return allow(), ""
	case !ready(n):
		reason = unreachableAt(reason, n, e.rule)
		reason.Seconds = untilForced(s, v, p, e.rule)
		if a.Cooperative && !unawaited(p) {
			reason.Seconds = anothersTime
		}
	case e.usage == usageInUse && Unexplained(s, p) && untilUnexplained(v, p, now) <= 0:
		reason.Code = InUseUnexplained
	case e.usage == usageInUse:
		reason.Code = InUse
	case e.usage == usageStaged:
		reason = stayingAt(s, v, p, reason, now)
	case e.usage == usageNone:
		reason.Code, reason.Detail = InUseUnknown, whyUnsaid(n, v.ID, now)
	default:
		reason.Code = InUseUnknown
		if n.Reporting {
			reason.Detail = forgetful
			switch {
			case p.Left && !p.HasOwn():
				reason.Detail = forgetfulLeft
			case ofAnotherMachine(s, v, p), noBootEnds(s, v, p):
				reason = formerMachineReason(s, v, p, e.rule, reason)
			case !p.HasAttachments() && !v.ID.NoAttach():
				reason.Detail = forgetful + unattached
			case a.couldLook(s, v, p):
				reason.Detail = forgetfulUnseen
			}
		}
	}
	return refuse([]Reason{reason}), ""
}

// Unexplained says whether volumesInUse names a volume without a VolumeAttachment, a pod, or an entry in
// volumesAttached there. It counts as in use: after a VolumeAttachment's finalizer was removed by hand, the
// list may be the only trace of a mount.
func Unexplained(s ledger.Snapshot, p *ledger.VolumeOnNode) bool {
	return p.MayBeInUse() && !p.HasAttachments() && !p.Reported && !p.Sent && !p.Left && !p.WithoutAttachment() && unused(s, p)
}

// unexplainedGrace is how long a kubelet may list a detached volume without a report: after a forced detach
// a returning kubelet unmounts first.
const unexplainedGrace = time.Minute

// untilUnexplained is the rest of that time.
func untilUnexplained(v *ledger.Volume, p *ledger.VolumeOnNode, now time.Time) time.Duration {
	if at, seen := v.Left(p.Node); seen {
		return unexplainedGrace - now.Sub(at)
	}
	return 0
}

// forgetful is why a reporting kubelet is not believed.
const forgetful = "its kubelet may have forgotten that it is mounted, since for a while the node did not name it as attached"

// moorage-node could tell, and does not.
const forgetfulUnseen = forgetful + ", and moorage-node does not say whether it is"

// formerMachine is why a kubelet is not believed if another machine had the node's name.
const formerMachine = "another machine had its name before, and may have it mounted"

// The present machine may also have it mounted: no boot tells.
const severalMachines = "the machine that is there may have it mounted, or one that had its name before"

// unattached is added to either if there is no VolumeAttachment to delete.
const unattached = ", and no VolumeAttachment of it is there"

// formerMachineReason is the reason for a volume that an earlier machine may have mounted, until a rule of
// force holds.
func formerMachineReason(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, f forcing, reason Reason) Reason {
	reason.Code, reason.Volume, reason.Node = InUseUnknown, v.ID, p.Node
	reason.Detail, reason.Seconds = formerMachine, secondsLeft(f)
	if slices.ContainsFunc(s.Unknown(v, p), func(b ledger.Boot) bool { return b.SystemUUID == ledger.OtherMachine || b.Is(s.Node(p.Node)) }) || noBootEnds(s, v, p) {
		reason.Detail = severalMachines
	}
	if !p.HasAttachments() && !v.ID.NoAttach() {
		reason.Detail += unattached
	}
	return reason
}

// noBootEnds says whether a volume stays unknown after a reboot: several boots may have it mounted, and the
// hold names one.
func noBootEnds(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	return slices.ContainsFunc(s.Unknown(v, p), func(b ledger.Boot) bool { return b.SystemUUID != "" && b.BootID == "" })
}

// forgetfulLeft is forgetful for a volume without a VolumeAttachment there.
const forgetfulLeft = forgetful + ", and it may be attached there still, though its VolumeAttachment is gone"

// forgetfulTaken is why a detached volume may still be mounted at a node.
const forgetfulTaken = "it was detached from there by force while it was in use, and that boot of the machine lasts"

// untilForced is a Reason's time: none while pods of the node delay the rule, noTimeForces if the policy
// has no time for it.
func untilForced(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, f forcing) int64 {
	if f.Rule == "" && unused(s, p) && afterPodGone(s, policyOf(s, v)) < 0 {
		return noTimeForces
	}
	return secondsLeft(f)
}

// secondsLeft is rounded to steps, so that it does not change with each decision, and is at most the rule's
// whole time; 0: over.
func secondsLeft(f forcing) int64 {
	if f.Rule == "" || f.Left <= 0 || f.Step < time.Second {
		return 0
	}
	step := int64(f.Step / time.Second)
	seconds := func(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
	told := (seconds(f.Left) + step - 1) / step * step
	if f.Limit > 0 {
		told = min(told, seconds(max(f.Limit, f.Left)))
	}
	return told
}

// SafeToMount says whether the volume may be mounted at a node: its VolumeAttachment is attached, and
// volumesAttached, which the kubelet obeys, names it. If it needs no attachment, no removal from
// volumesAttached may be in flight.
func (a Arbiter) SafeToMount(s ledger.Snapshot, id ledger.VolumeID, n ledger.NodeName) bool {
	p := s.Volume(id).OnNode(n)
	switch {
	case !s.AttachRequired(id.Driver):
		return true
	case p == nil || !p.Reported:
		return false
	case id.NoAttach():
		return !p.UnreportSent
	}
	va := p.Own()
	return va != nil && va.Attached && !va.Deleting
}

// claimOf is the claim of the first PersistentVolume, else the PersistentVolume; empty for an inline
// volume.
func claimOf(s ledger.Snapshot, v *ledger.Volume) string {
	if claim := s.ClaimOf(v.PVs()); claim.Name != "" {
		return claim.Name
	}
	if len(v.PVs()) > 0 {
		return v.PVs()[0]
	}
	return ""
}
