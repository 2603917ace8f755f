// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// unused says whether a NodeVolume has no user but tickets that were never granted.
func unused(s ledger.Snapshot, p *ledger.NodeVolume) bool {
	for _, u := range p.Users {
		if claimStateOf(s, u) >= terminating {
			return false
		}
	}
	return true
}

// SafeToDetach says whether the volume may leave a node where nobody wants it
// any more, and by which rule of force; none when the kubelet's own word will
// do. Allow is not yet a licence to delete the VolumeAttachment: the steps of
// Plan prove it against the API first.
func (a Arbiter) SafeToDetach(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) (Verdict, string) {
	return a.safeToDetach(s, v, p, p.Own(), now)
}

// safeToDetach is SafeToDetach where the own attachment is known.
func (a Arbiter) safeToDetach(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, va *ledger.Attachment, now time.Time) (Verdict, string) {
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
			case ofAnotherMachine(n, v, p):
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

// Unexplained says whether a kubelet lists a volume in volumesInUse that is not attached
// there: it has neither a VolumeAttachment nor a pod there, and is not in volumesAttached. It
// counts all the same. A VolumeAttachment whose finalizer somebody has removed leaves no
// more behind, and then the list is the only word on a volume that is mounted.
func Unexplained(s ledger.Snapshot, p *ledger.NodeVolume) bool {
	return p.InUse && !p.HasAttachments() && !p.Reported && !p.Sent && !p.Left && !p.WithoutAttachment() && unused(s, p)
}

// unexplainedGrace is for how long a kubelet may list a volume after its attachment has gone,
// before that is told: one that comes back after a forced detach unmounts it first.
const unexplainedGrace = time.Minute

// untilUnexplained is how much of that time is left.
func untilUnexplained(v *ledger.Volume, p *ledger.NodeVolume, now time.Time) time.Duration {
	if at, seen := v.Left(p.Node); seen {
		return unexplainedGrace - now.Sub(at)
	}
	return 0
}

// forgetful is why the word of a kubelet that reports is not believed.
const forgetful = "its kubelet may have forgotten that it is mounted, since for a while the node did not name it as attached"

// forgetfulUnseen is the same where moorage-node could tell, and does not.
const forgetfulUnseen = forgetful + ", and moorage-node does not say whether it is"

// formerMachine is why it is not, where another machine had the node's name.
const formerMachine = "another machine had its name before, and may have it mounted"

// severalMachines is the same where the one that is there may have it mounted, too: no boot tells.
const severalMachines = "the machine that is there may have it mounted, or one that had its name before"

// unattached is added to either where no VolumeAttachment is there that somebody could delete.
const unattached = ", and no VolumeAttachment of it is there"

// formerMachineReason is the reason of a volume that such a machine may have mounted, as long as no rule
// of force is over.
func formerMachineReason(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, f forcing, reason Reason) Reason {
	reason.Code, reason.Volume, reason.Node = InUseUnknown, v.ID, p.Node
	reason.Detail, reason.Seconds = formerMachine, secondsLeft(f)
	if machine, _ := doubtedAt(s.Node(p.Node), v, p); machine == ledger.OtherMachine {
		reason.Detail = severalMachines
	}
	if !p.HasAttachments() && !v.ID.NoAttach() {
		reason.Detail += unattached
	}
	return reason
}

// forgetfulLeft is the same of a volume that has no VolumeAttachment there any more.
const forgetfulLeft = forgetful + ", and it may be attached there still, though its VolumeAttachment is gone"

// forgetfulTaken is why a volume that is attached to a node no more may be mounted there.
const forgetfulTaken = "it was detached from there by force while it was in use, and that boot of the machine lasts"

// untilForced is what a Reason says of the time until a rule of force is over:
// nothing while pods of the node hold it up, noTimeForces when the policy has
// no time for it.
func untilForced(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, f forcing) int64 {
	if f.Rule == "" && unused(s, p) && afterPodGone(s, policyOf(s, v)) < 0 {
		return noTimeForces
	}
	return secondsLeft(f)
}

// secondsLeft is told in steps, so that it does not change with every look, and is never
// more than the rule takes in all. 0 of a rule whose time is over, which may have no steps.
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

// SafeToMount says whether the volume may be mounted at a node: its
// VolumeAttachment is attached, and the node's volumesAttached, which the
// kubelet obeys, says so. Of a volume that needs no attachment nothing on its way
// takes it out of there.
func (a Arbiter) SafeToMount(s ledger.Snapshot, id ledger.VolumeID, n ledger.NodeName) bool {
	p := s.Volume(id).NodeVolume(n)
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

// claimOf names a volume for people: the claim of its first PersistentVolume,
// or that PersistentVolume. Empty for an inline volume.
func claimOf(s ledger.Snapshot, v *ledger.Volume) string {
	if claim := s.ClaimOf(v.PVs()); claim.Name != "" {
		return claim.Name
	}
	if len(v.PVs()) > 0 {
		return v.PVs()[0]
	}
	return ""
}
