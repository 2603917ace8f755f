// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The reasons that refuse a node or a grant.
const (
	NoFreeSlot          ledger.Code = "NoFreeSlot"          // the driver's limit at the node is reached
	NodeExhausted       ledger.Code = "NodeExhausted"       // the driver said ResourceExhausted
	AccessModesConflict ledger.Code = "AccessModesConflict" // ReadOnlyMany with ReadWriteOnce
	ClaimMissing        ledger.Code = "ClaimMissing"
	ClaimLost           ledger.Code = "ClaimLost"
	ClaimDeleting       ledger.Code = "ClaimDeleting"
	VolumeDeleting      ledger.Code = "VolumeDeleting"
	Outranked           ledger.Code = "Outranked"     // gives way to a ticket that ranks before
	NotBeforeBind       ledger.Code = "NotBeforeBind" // Cooperative mode attaches after the bind
	NodeFenced          ledger.Code = "NodeFenced"    // what is at the node no longer counts
)

// The reasons that wait.
const (
	ClaimUnbound        ledger.Code = "ClaimUnbound" // Immediate binding is under way
	HeldElsewhere       ledger.Code = "HeldElsewhere"
	UsedByOtherPod      ledger.Code = "UsedByOtherPod" // ReadWriteOncePod
	DriverNotRegistered ledger.Code = "DriverNotRegistered"
	NodeMissing         ledger.Code = "NodeMissing"
	NodeUnmanaged       ledger.Code = "NodeUnmanaged"
	NotGranted          ledger.Code = "NotGranted"
	Attaching           ledger.Code = "Attaching"
	AttachFailed        ledger.Code = "AttachFailed"
	NotReported         ledger.Code = "NotReported" // attached, not yet in volumesAttached
	Detaching           ledger.Code = "Detaching"
	DetachFailed        ledger.Code = "DetachFailed"
	DetachUnanswered    ledger.Code = "DetachUnanswered" // neither done nor refused for a while
	InUse               ledger.Code = "InUse"
	InUseUnknown        ledger.Code = "InUseUnknown"
	NodeUnreachable     ledger.Code = "NodeUnreachable"
	DetachDelayed       ledger.Code = "DetachDelayed"
	ForeignAttachment   ledger.Code = "ForeignAttachment"
	VolumeMissing       ledger.Code = "VolumeMissing" // the claim's PersistentVolume has not been seen
	NodeReplaced        ledger.Code = "NodeReplaced"  // attached to another machine of the node's name
)

// Codes lists every reason code, for docs/reasons.md and its test.
func Codes() []ledger.Code {
	return []ledger.Code{
		NoFreeSlot, NodeExhausted, AccessModesConflict, ClaimMissing, ClaimLost, ClaimDeleting,
		VolumeDeleting, Outranked, NotBeforeBind, NodeFenced, ClaimUnbound, HeldElsewhere, UsedByOtherPod, DriverNotRegistered, NodeMissing,
		NodeUnmanaged, NotGranted, Attaching, AttachFailed, NotReported, Detaching, DetachFailed, DetachUnanswered,
		InUse, InUseUnknown, NodeUnreachable, DetachDelayed, ForeignAttachment, VolumeMissing, NodeReplaced,
	}
}

// outcomeOf says whether a reason of this code denies or waits.
func outcomeOf(c ledger.Code) Outcome {
	switch c {
	case NoFreeSlot, NodeExhausted, AccessModesConflict, ClaimMissing, ClaimLost, ClaimDeleting, VolumeDeleting, Outranked, NotBeforeBind, NodeFenced:
		return Deny
	}
	return Wait
}

// Message says the reason in words a user of Kubernetes understands.
func (r Reason) Message() string {
	volume := r.volume()
	switch r.Code {
	case NoFreeSlot:
		if r.Needed > 1 {
			return fmt.Sprintf("too few free slots of driver %s (%d of %d used, %d needed)", r.Driver, r.Used, r.Limit, r.Needed)
		}
		return fmt.Sprintf("no free slot of driver %s (%d of %d used)", r.Driver, r.Used, r.Limit)
	case NodeExhausted:
		if r.Detail != "" {
			return fmt.Sprintf("driver %s has no room for another volume: %s", r.Driver, r.said())
		}
		return fmt.Sprintf("driver %s has no room for another volume (it answered ResourceExhausted)", r.Driver)
	case AccessModesConflict:
		return fmt.Sprintf("%s has both ReadOnlyMany and ReadWriteOnce, which no CSI attacher can attach: remove one of the access modes", volume)
	case ClaimMissing:
		return fmt.Sprintf("claim %s does not exist, or belongs to someone else", r.Claim)
	case ClaimLost:
		return fmt.Sprintf("claim %s has lost its PersistentVolume", r.Claim)
	case ClaimDeleting:
		return fmt.Sprintf("claim %s is being deleted", r.Claim)
	case VolumeDeleting:
		return fmt.Sprintf("the PersistentVolume of %s is being deleted", volume)
	case ClaimUnbound:
		return fmt.Sprintf("claim %s is not bound yet", r.Claim)
	case HeldElsewhere:
		return fmt.Sprintf("can't take %s: %s holds it%s", volume, r.Node, r.forWhom())
	case Outranked:
		return fmt.Sprintf("%s goes to %s%s, which comes before", volume, r.Node, r.forWhom())
	case NotBeforeBind:
		return fmt.Sprintf("the policy of driver %s binds pods after their volumes are attached, and Moorage beside the attach/detach controller attaches after the bind: start moorage-controller with --attach-before-bind, or set bindAfter: Granted", r.Driver)
	case NodeFenced:
		return fmt.Sprintf("%s may be taken from %s, which is not ready and is out of service, or has been unreachable for too long", volume, r.Node)
	case VolumeMissing:
		return fmt.Sprintf("the PersistentVolume of claim %s does not exist, or has not been seen yet", r.Claim)
	case UsedByOtherPod:
		return fmt.Sprintf("%s serves one pod at a time (ReadWriteOncePod) and is in use%s", volume, r.forWhom())
	case DriverNotRegistered:
		return fmt.Sprintf("driver %s is not registered", r.Driver)
	case NodeMissing:
		return fmt.Sprintf("node %s does not exist", r.Node)
	case NodeUnmanaged:
		return fmt.Sprintf("node %s has attach and detach left to its kubelet", r.Node)
	case NotGranted:
		return fmt.Sprintf("%s is not granted yet", volume)
	}
	return r.progress(volume)
}

// progress words the reasons of an attach or detach under way.
func (r Reason) progress(volume string) string {
	switch r.Code {
	case Attaching:
		return fmt.Sprintf("%s is being attached to %s", volume, r.Node)
	case AttachFailed:
		return fmt.Sprintf("attaching %s to %s failed and will be tried again: %s", volume, r.Node, r.said())
	case NotReported:
		return fmt.Sprintf("%s is attached to %s; its node status will say so at once", volume, r.Node)
	case Detaching:
		return fmt.Sprintf("%s is being detached from %s", volume, r.Node)
	case DetachFailed:
		return fmt.Sprintf("detaching %s from %s failed and will be tried again: %s", volume, r.Node, r.said())
	case DetachUnanswered:
		return fmt.Sprintf("%s is being detached from %s%s, and driver %s has neither done nor refused it. It waits for the driver's attacher: see that it runs, and what its log says of VolumeAttachment %s. "+
			"If driver and attacher are gone for good, detach the volume by hand, and only then take the VolumeAttachment's finalizers off",
			volume, r.Node, r.since(), r.Driver, ledger.AttachmentName(r.Volume, r.Node))
	case InUse:
		return fmt.Sprintf("%s is still in use at %s: its kubelet reports it in volumesInUse", volume, r.Node)
	case InUseUnknown:
		return fmt.Sprintf("%s may be in use at %s: its kubelet has not reported since the node object was made", volume, r.Node)
	case NodeUnreachable:
		return fmt.Sprintf("%s may be in use at %s, which is not ready. %s", volume, r.Node, r.waysOut())
	case DetachDelayed:
		return fmt.Sprintf("%s is kept at %s for another %s, in case its pod comes back (detachDelay)", volume, r.Node, time.Duration(r.Seconds)*time.Second)
	case NodeReplaced:
		return fmt.Sprintf("%s was attached to another machine of the name %s (%s): detach it there by hand, then delete VolumeAttachment %s", volume, r.Node, r.Detail, ledger.AttachmentName(r.Volume, r.Node))
	case ForeignAttachment:
		return fmt.Sprintf("%s has a VolumeAttachment at %s that Moorage neither made nor can place: %s", volume, r.Node, r.Detail)
	}
	return string(r.Code)
}

// noTimeForces as a Reason's Seconds says that no rule of force will ever be
// over by time alone.
const noTimeForces = -1

// waysOut names what ends the wait for a node that is not ready.
func (r Reason) waysOut() string {
	var b strings.Builder
	when := "; at once when"
	switch {
	case r.Seconds > 0:
		fmt.Fprintf(&b, "It is detached by force in %s", time.Duration(r.Seconds)*time.Second)
	case r.Seconds == noTimeForces:
		b.WriteString("No time of its policy forces the detach")
		when = "; it goes when"
	default:
		b.WriteString("It waits for as long as pods of that node exist")
	}
	b.WriteString(when + " the node comes back, or is known to be powered off and has the taint node.kubernetes.io/out-of-service")
	return b.String()
}

// since is since when, in words, where that is known.
func (r Reason) since() string {
	if r.Since == 0 {
		return ""
	}
	return " since " + time.Unix(r.Since, 0).UTC().Format(time.RFC3339)
}

func (r Reason) forWhom() string {
	if r.Who.IsZero() {
		return ""
	}
	if r.Who.Name == "" {
		return " for somebody of another namespace"
	}
	return " for " + r.Who.String()
}

// codeNames are gRPC's names of its codes.
func codeNames() []string {
	return []string{
		"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
		"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable",
		"DataLoss", "Unauthenticated",
	}
}

// said is what the driver said, in its own words, and with the code if they do
// not name it: attachers write gRPC's own text of an error as a rule, which does.
func (r Reason) said() string {
	names := codeNames()
	if r.GRPC <= 0 || int(r.GRPC) >= len(names) || strings.Contains(r.Detail, names[r.GRPC]) {
		return r.Detail
	}
	return r.Detail + " (" + names[r.GRPC] + ")"
}

func (r Reason) volume() string {
	if r.Claim != "" {
		return "volume " + r.Claim
	}
	return "volume " + r.Volume.String()
}
