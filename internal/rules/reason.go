// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The reasons that refuse a node or a grant.
const (
	NoFreeSlot     ledger.Code = ledger.CodeNoFreeSlot // the driver's limit at the node is reached
	NodeExhausted  ledger.Code = "NodeExhausted"       // the driver said ResourceExhausted
	ClaimMissing   ledger.Code = "ClaimMissing"
	ClaimLost      ledger.Code = "ClaimLost"
	ClaimDeleting  ledger.Code = "ClaimDeleting"
	VolumeDeleting ledger.Code = "VolumeDeleting"
	Outranked      ledger.Code = "Outranked"    // gives way to a claimant that ranks before
	NodeExcluded   ledger.Code = "NodeExcluded" // by the PersistentVolume's nodeAffinity
	NodeFenced     ledger.Code = "NodeFenced"   // what is at the node no longer counts
	TooManyVolumes ledger.Code = "TooManyVolumes"
)

// The reasons that wait.
const (
	ClaimUnbound           ledger.Code = "ClaimUnbound" // Immediate binding is under way
	HeldElsewhere          ledger.Code = "HeldElsewhere"
	StaysDetached          ledger.Code = "StaysDetached"          // for a ticket with spec.detached
	IncompatibleParameters ledger.Code = "IncompatibleParameters" // somebody has it there, attached otherwise
	SELinuxConflict        ledger.Code = "SELinuxConflict"        // a pod has it there, mounted with another SELinux label
	UsedByOtherPod         ledger.Code = "UsedByOtherPod"         // ReadWriteOncePod
	DriverNotRegistered    ledger.Code = "DriverNotRegistered"
	NodeMissing            ledger.Code = "NodeMissing"
	NodeUnmanaged          ledger.Code = "NodeUnmanaged"
	NotGranted             ledger.Code = ledger.CodeNotGranted
	NoFreeWorker           ledger.Code = "NoFreeWorker" // of the driver's, by its AttachPolicy
	Attaching              ledger.Code = "Attaching"
	AttachFailed           ledger.Code = "AttachFailed"
	NotReported            ledger.Code = "NotReported" // attached, not yet in volumesAttached
	Detaching              ledger.Code = "Detaching"
	DetachFailed           ledger.Code = "DetachFailed"
	DetachUnanswered       ledger.Code = "DetachUnanswered" // neither done nor refused for a while
	KeptByFinalizer        ledger.Code = "KeptByFinalizer"  // detached, and its VolumeAttachment stays
	InUse                  ledger.Code = "InUse"
	InUseUnexplained       ledger.Code = "InUseUnexplained"  // and not attached there
	StagedAtNode           ledger.Code = "StagedAtNode"      // and the kubelet does not list it
	UnstageUnanswered      ledger.Code = "UnstageUnanswered" // a call to unstage it may yet have its effect
	InUseUnknown           ledger.Code = "InUseUnknown"
	NodeUnreachable        ledger.Code = "NodeUnreachable"
	DetachDelayed          ledger.Code = "DetachDelayed"
	ForeignAttachment      ledger.Code = "ForeignAttachment"
	TooManyTickets         ledger.Code = "TooManyTickets" // of one namespace, at one node
	SlotsNotKept           ledger.Code = "SlotsNotKept"   // lacks only slots, and keeps none that come free
	NeverAttached          ledger.Code = "NeverAttached"  // so that nothing keeps it from nodes
	NoNode                 ledger.Code = "NoNode"         // none can take the volumes of a ticket with spec.wherever
	LeavesNode             ledger.Code = "LeavesNode"     // a ticket with onDrain: Move, from one that is emptied or gone
	VolumeMissing          ledger.Code = "VolumeMissing"  // the claim's PersistentVolume has not been seen
	NodeReplaced           ledger.Code = "NodeReplaced"   // attached by another name of the driver for the node
	VolumeReplaced         ledger.Code = "VolumeReplaced" // attached under the name of a PersistentVolume that is another volume's now
)

// Message says the reason in words a user of Kubernetes understands.
func (r Reason) Message() string {
	if words := rowOf(r.Code).words; words != nil {
		return words(r)
	}
	return string(r.Code)
}

// noTimeForces as a Reason's Seconds says that no rule of force will ever be
// over by time alone.
const noTimeForces = -1

// anothersTime as a Reason's Seconds says that kube-controller-manager forces the detach. It counts its
// time from when no pod there has a running container, by its own view, and writes that nowhere.
const anothersTime = -2

// howUnreachable says in what way nothing is heard of a node.
func (r Reason) howUnreachable() string {
	if r.NodeDeleted {
		return "whose Node was deleted"
	}
	return "which is not ready"
}

// waysOut names what ends the wait for a node that is not ready or was deleted.
func (r Reason) waysOut() string {
	var b strings.Builder
	when := "; at once when"
	switch {
	case r.Seconds == anothersTime:
		b.WriteString("kube-controller-manager detaches it by force, at the latest six minutes after the last pod with it there has ended or was deleted, whether the machine is off or not")
	case r.Seconds > 0:
		b.WriteString(forcedIn + (time.Duration(r.Seconds) * time.Second).String())
	case !r.Brake.IsZero():
		fmt.Fprintf(&b, "The time of afterUnreachable does not run while %s can't be reached, since the network may have failed and not the machines", r.Brake)
		when = "; it goes at once when"
	case r.Seconds == noTimeForces:
		b.WriteString("No time limit forces its detach, by its AttachPolicy or a flag of the controller")
		when = "; it goes when"
	default:
		b.WriteString("It is not detached by force while a pod at that node uses it")
	}
	if r.NodeDeleted { // there is nothing that could be tainted
		b.WriteString(when + " the machine's kubelet makes the Node again")
	} else {
		b.WriteString(when + " the node comes back, or is known to be powered off and has the taint node.kubernetes.io/out-of-service")
	}
	if r.Seconds > 0 && !r.Brake.IsZero() {
		fmt.Fprintf(&b, ". Meanwhile the time of afterUnreachable does not run, since %s can't be reached", r.Brake)
	}
	return b.String()
}

// forcedIn begins the sentence that says how much of a rule's time is left.
const forcedIn = "It is detached by force in "

// ForcedIn is how much of a rule's time was left when a message of a Reason was written;
// false for a message that names no time.
func ForcedIn(message string) (time.Duration, bool) {
	_, rest, _ := strings.Cut(message, forcedIn)
	text, _, ended := strings.Cut(rest, ";")
	left, err := time.ParseDuration(text)
	return left, ended && err == nil
}

// since is since when, in words, where that is known.
func (r Reason) since() string {
	if r.Since == 0 {
		return ""
	}
	return " (since " + time.Unix(r.Since, 0).UTC().Format(time.RFC3339) + ")"
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

// asked is until when who holds a volume has been asked to let go of it.
func (r Reason) asked() string {
	if r.Until == 0 {
		return ""
	}
	return ", which has been asked to let go of it by " + time.Unix(r.Until, 0).UTC().Format(time.RFC3339)
}

// codeNames are gRPC's names of its codes.
func codeNames() []string {
	return []string{
		"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
		"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable",
		"DataLoss", "Unauthenticated",
	}
}

// CodeNamed is the gRPC code of a name, 0 for a name that gRPC doesn't have.
func CodeNamed(name string) int32 { return int32(max(0, slices.Index(codeNames(), name))) }

// said is what the driver said, in its own words, and with the code if they do
// not name it: attachers write gRPC's own text of an error as a rule, which does.
func (r Reason) said() string {
	names := codeNames()
	if r.GRPC <= 0 || int(r.GRPC) >= len(names) || strings.Contains(r.Detail, names[r.GRPC]) {
		return r.Detail
	}
	return r.Detail + " (" + names[r.GRPC] + ")"
}

// volume names the volume for people, by its claim where that is known.
func (r Reason) volume() string {
	if r.Claim != "" {
		return "volume " + r.Claim
	}
	return "volume " + r.Volume.String()
}
