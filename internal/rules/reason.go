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
	NodeFenced     ledger.Code = "NodeFenced"   // users at the node no longer count
	TooManyVolumes ledger.Code = "TooManyVolumes"
)

// The reasons that wait.
const (
	ClaimUnbound           ledger.Code = "ClaimUnbound" // Immediate binding is under way
	HeldElsewhere          ledger.Code = "HeldElsewhere"
	StaysDetached          ledger.Code = "StaysDetached"          // for a ticket with spec.detached
	IncompatibleParameters ledger.Code = "IncompatibleParameters" // a user there has other parameters
	SELinuxConflict        ledger.Code = "SELinuxConflict"        // a pod there has another SELinux label
	UsedByOtherPod         ledger.Code = "UsedByOtherPod"         // ReadWriteOncePod
	DriverNotRegistered    ledger.Code = "DriverNotRegistered"
	NodeMissing            ledger.Code = "NodeMissing"
	NodeUnmanaged          ledger.Code = "NodeUnmanaged"
	NotGranted             ledger.Code = ledger.CodeNotGranted
	NoFreeWorker           ledger.Code = "NoFreeWorker" // by the AttachPolicy
	Attaching              ledger.Code = "Attaching"
	AttachFailed           ledger.Code = "AttachFailed"
	NotReported            ledger.Code = "NotReported" // attached, not yet in volumesAttached
	Detaching              ledger.Code = "Detaching"
	DetachFailed           ledger.Code = "DetachFailed"
	DetachUnanswered       ledger.Code = "DetachUnanswered" // neither done nor refused for a while
	KeptByFinalizer        ledger.Code = "KeptByFinalizer"  // detached, but its VolumeAttachment stays
	InUse                  ledger.Code = "InUse"
	InUseUnexplained       ledger.Code = "InUseUnexplained" // but not attached there
	StagedAtNode           ledger.Code = "StagedAtNode"     // but the kubelet does not list it
	InUseUnknown           ledger.Code = "InUseUnknown"
	NodeUnreachable        ledger.Code = "NodeUnreachable"
	DetachDelayed          ledger.Code = "DetachDelayed"
	ForeignAttachment      ledger.Code = "ForeignAttachment"
	TooManyTickets         ledger.Code = "TooManyTickets" // of one namespace, at one node
	SlotsNotKept           ledger.Code = "SlotsNotKept"   // lacks only slots, and keeps none of them
	NeverAttached          ledger.Code = "NeverAttached"  // nothing can keep it from nodes
	NoNode                 ledger.Code = "NoNode"         // no node takes the volumes of a ticket with spec.wherever
	LeavesNode             ledger.Code = "LeavesNode"     // with onDrain: Move
	VolumeMissing          ledger.Code = "VolumeMissing"  // the claim's PersistentVolume is not seen yet
	NodeReplaced           ledger.Code = "NodeReplaced"   // the driver had another name for the node
	VolumeReplaced         ledger.Code = "VolumeReplaced" // its PersistentVolume has another volume now
)

// Message returns the reason in words for a user.
func (r Reason) Message() string {
	if words := rowOf(r.Code).words; words != nil {
		return words(r)
	}
	return string(r.Code)
}

// noTimeForces: time alone permits no forced detach.
const noTimeForces = -1

// anothersTime: kube-controller-manager forces the detach. Its time starts when it sees no running
// container of the node's pods, and is written nowhere.
const anothersTime = -2

func (r Reason) howUnreachable() string {
	if r.NodeDeleted {
		return "whose Node was deleted"
	}
	return "which is not ready"
}

// waysOut names what ends the wait for a node that is not ready or deleted.
func (r Reason) waysOut() string {
	var b strings.Builder
	when := "; at once when"
	switch {
	case r.Seconds == anothersTime:
		b.WriteString("kube-controller-manager detaches it by force, at the latest six minutes after the last pod with it there has ended or was deleted, whether the machine is off or not")
	case r.Seconds > 0:
		b.WriteString(forcedIn + (time.Duration(r.Seconds) * time.Second).String())
	case r.Brake.On:
		fmt.Fprintf(&b, "The time of afterUnreachable does not run while %s can't be reached, since the network may have failed and not the machines", r.Brake)
		when = "; it goes at once when"
	case r.Seconds == noTimeForces:
		b.WriteString("No time limit forces its detach, by its AttachPolicy or a flag of the controller")
		when = "; it goes when"
	default:
		b.WriteString("It is not detached by force while a pod at that node uses it")
	}
	if r.NodeDeleted { // there is no Node to taint
		b.WriteString(when + " the machine's kubelet makes the Node again")
	} else {
		b.WriteString(when + " the node comes back, or is known to be powered off and has the taint node.kubernetes.io/out-of-service")
	}
	if r.Seconds > 0 && r.Brake.On {
		fmt.Fprintf(&b, ". Meanwhile the time of afterUnreachable does not run, since %s can't be reached", r.Brake)
	}
	return b.String()
}

// forcedIn begins the sentence with the remaining time of a rule.
const forcedIn = "It is detached by force in "

// ForcedIn returns a rule's remaining time in a message; false: none.
func ForcedIn(message string) (time.Duration, bool) {
	_, rest, _ := strings.Cut(message, forcedIn)
	text, _, ended := strings.Cut(rest, ";")
	left, err := time.ParseDuration(text)
	return left, ended && err == nil
}

// since is the start in words, if known.
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

// asked is until when the holder of a volume must let go of it.
func (r Reason) asked() string {
	if r.Until == 0 {
		return ""
	}
	return ", which has been asked to let go of it by " + time.Unix(r.Until, 0).UTC().Format(time.RFC3339)
}

func codeNames() []string {
	return []string{
		"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
		"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable",
		"DataLoss", "Unauthenticated",
	}
}

// CodeNamed returns the gRPC code of a name; 0: unknown.
func CodeNamed(name string) int32 { return int32(max(0, slices.Index(codeNames(), name))) }

// said is the driver's own text, with the code if the text lacks it: attachers usually write gRPC's error
// text, which has it.
func (r Reason) said() string {
	names := codeNames()
	if r.GRPC <= 0 || int(r.GRPC) >= len(names) || strings.Contains(r.Detail, names[r.GRPC]) {
		return r.Detail
	}
	return r.Detail + " (" + names[r.GRPC] + ")"
}

// volume names the volume for messages, by its claim if known.
func (r Reason) volume() string {
	if r.Claim != "" {
		return "volume " + r.Claim
	}
	return "volume " + r.Volume.String()
}

// The table of reasons, for code that acts on a reason or reports it.

// rowOf is the row of a code. An unknown code waits, and has no words.
func rowOf(c ledger.Code) reasonRow {
	for i := range reasonTable {
		if reasonTable[i].code == c {
			return reasonTable[i]
		}
	}
	return reasonRow{code: c, effect: waits, course: lasts, evict: noEviction, during: CallNone, nodes: unfit}
}

// Codes lists all reason codes, denying codes first.
func Codes() []ledger.Code {
	codes := make([]ledger.Code, 0, len(reasonTable))
	for i := range reasonTable {
		codes = append(codes, reasonTable[i].code)
	}
	return codes
}

// outcomeOf says whether a reason of this code denies or waits.
func outcomeOf(c ledger.Code) Outcome {
	if rowOf(c).effect == denies {
		return Deny
	}
	return Wait
}

// Transient says whether a wait usually ends soon by itself: it is reported only after a while.
func Transient(c ledger.Code) bool {
	return rowOf(c).course == passes
}

// DriverCodes lists the codes with words that name only a driver.
func DriverCodes() []ledger.Code {
	var codes []ledger.Code
	for i := range reasonTable {
		if reasonTable[i].subject == ofDriver {
			codes = append(codes, reasonTable[i].code)
		}
	}
	return codes
}

// CallOf is a code's driver call.
func CallOf(c ledger.Code) Call {
	return rowOf(c).during
}

// LiftedByEviction says whether fewer pods on a node could lift the reason.
func (r Reason) LiftedByEviction(n ledger.NodeName) bool {
	evict := rowOf(r.Code).evict
	return evict == anyEviction || evict == evictionThere && r.Node == n
}

// OfNodes returns kube-scheduler's words after a count of nodes: "3 node(s) exceed max volume count: no
// free slot …".
func (r Reason) OfNodes() string {
	return strings.Replace(rowOf(r.Code).nodes, theDriver, r.Driver, 1) + r.Message()
}

// OfPod returns the words for a pod refused without a check of nodes: those of kube-scheduler's own plugins
// if they refuse it too.
func (r Reason) OfPod() string {
	switch {
	case r.Code == ClaimMissing && r.Detail == "":
		return fmt.Sprintf("persistentvolumeclaim %q not found", r.Claim)
	case r.Code == ClaimLost:
		return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", r.Claim, r.Detail)
	case r.Code == ClaimDeleting:
		return fmt.Sprintf("persistentvolumeclaim %q is being deleted", r.Claim)
	case r.Code == ClaimUnbound:
		return "pod has unbound immediate PersistentVolumeClaims: " + r.Message()
	case r.Code == VolumeMissing:
		return fmt.Sprintf("persistentvolume %q not found: claim %s is bound to it", r.Detail, r.Claim)
	}
	return r.Message()
}

// RefusedByStock says whether kube-scheduler's own plugins, without policies and tickets, also refuse the
// pod. Its condition is then the same as without Moorage.
func (v Verdict) RefusedByStock() bool {
	for _, r := range v.Reasons {
		switch {
		case slices.Contains([]ledger.Code{ClaimMissing, ClaimLost, ClaimDeleting, ClaimUnbound, VolumeMissing}, r.Code),
			r.Code == UsedByOtherPod && !r.Who.Ticket, r.Code == NoFreeSlot && r.Policy == "":
			return true
		}
	}
	return false
}
