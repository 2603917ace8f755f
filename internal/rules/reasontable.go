// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Rows have no field names, so that a row without a column does not compile. docs/reasons.md has causes and
// required actions, and programs quote it.
type reasonRow struct {
	code    ledger.Code
	effect  effect
	course  course
	evict   eviction
	subject subject
	during  Call
	nodes   string // the words after a count of nodes
	words   func(Reason) string
}

// effect is a reason's effect on a request.
type effect uint8

const (
	denies effect = iota + 1
	waits
)

// course is how a reason ends.
type course uint8

const (
	lasts  course = iota + 1
	passes        // reported only after a while
)

// eviction says whether fewer pods on a node lift a reason there.
type eviction uint8

const (
	noEviction eviction = iota + 1
	anyEviction
	evictionThere // at the reason's own node
)

// subject is what a reason's words name.
type subject uint8

const (
	ofDriver subject = iota + 1 // only a driver
	ofMore                      // a claim, a node, or numbers that differ by node
)

// Call is a driver's call.
type Call uint8

// A reason of CallDetach follows a proof that the detach is safe.
const (
	CallNone Call = iota + 1
	CallAttach
	CallDetach
)

const (
	unfit = "node(s) unfit: "
	where = "node(s) where "
	plain = "node(s) "
)

// kube-scheduler's own plugins refuse a node for these reasons too. The words begin with theirs, because
// people, autoscalers and test suites search for them.
const (
	exceeds      = "node(s) exceed max volume count: "
	unavailable  = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod: "
	mismatches   = "node(s) didn't match PersistentVolume's node affinity: "
	notInstalled = theDriver + " CSI driver is not installed on the node: "
	theDriver    = "DRIVER" // the placeholder of the driver's name
)

// reasonTable has the order of docs/reasons.md.
var reasonTable = [...]reasonRow{
	{NoFreeSlot, denies, lasts, anyEviction, ofMore, CallNone, exceeds, Reason.noFreeSlot},
	{NodeExhausted, denies, lasts, anyEviction, ofDriver, CallNone, where, Reason.nodeExhausted},
	{ClaimMissing, denies, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		switch r.Detail {
		case notTheirs:
			return fmt.Sprintf("claim %s exists, and is another one than is meant: it has another owner than the pod, or another UID than the ticket names", r.Claim)
		case madeAgain:
			return fmt.Sprintf("claim %s, or its PersistentVolume, was deleted and made again for another volume after the ticket was granted", r.Claim)
		}
		return fmt.Sprintf("claim %s not found", r.Claim)
	}},
	{ClaimLost, denies, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("claim %s has lost its PersistentVolume", r.Claim)
	}},
	{ClaimDeleting, denies, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("claim %s is being deleted", r.Claim)
	}},
	{VolumeDeleting, denies, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("the PersistentVolume of %s is being deleted", r.volume())
	}},
	{Outranked, denies, lasts, noEviction, ofMore, CallNone, where, func(r Reason) string {
		if r.Node == ledger.Detached {
			return fmt.Sprintf("%s is to be detached%s first", r.volume(), r.forWhom())
		}
		if r.Node == "" {
			return fmt.Sprintf("%s is kept%s", r.volume(), r.forWhom())
		}
		return fmt.Sprintf("%s goes to %s%s first", r.volume(), r.Node, r.forWhom())
	}},
	{NodeExcluded, denies, lasts, noEviction, ofMore, CallNone, mismatches, func(r Reason) string {
		return fmt.Sprintf("can't use %s: the node affinity of its PersistentVolume excludes the node", r.volume())
	}},
	{NodeFenced, denies, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		if r.Driver != "" {
			return fmt.Sprintf("the storage of %s has cut node %s off, by a NetworkFence: %s can't be mounted there", r.Driver, r.Node, r.volume())
		}
		return fmt.Sprintf("%s could be taken from %s at any time, so that it is not granted there: the node is not ready, and is out of service, cut off from its storage, or unreachable for too long", r.volume(), r.Node)
	}},
	{TooManyVolumes, denies, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%d volumes are asked for, and one pod or ticket can have %d at most", r.Needed, r.Limit)
	}},

	{ClaimUnbound, waits, passes, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("claim %s is not bound yet", r.Claim)
	}},
	{HeldElsewhere, waits, lasts, noEviction, ofMore, CallNone, plain, func(r Reason) string {
		if r.Detail == onlyPromised {
			return fmt.Sprintf("can't take %s: it is promised to %s%s%s", r.volume(), r.Node, r.forWhom(), r.asked())
		}
		words := fmt.Sprintf("can't take %s: %s holds it%s%s", r.volume(), r.Node, r.forWhom(), r.asked())
		switch r.Detail {
		case crossedTold:
			words += ", which waits in turn for a volume that is attached here, so that neither goes on. This pod was bound later: delete it"
		case crossedNamed:
			words += ", which waits in turn for a volume that is attached here, so that neither goes on. That pod was bound later: delete it"
		}
		return words
	}},
	{StaysDetached, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		of := ""
		if r.Detail != "" && r.Who.Name != "" {
			of = " (" + r.Detail + ")"
		}
		return fmt.Sprintf("%s is to stay detached%s%s: no node gets it before that ticket ends%s", r.volume(), r.forWhom(), of, r.asked())
	}},
	{IncompatibleParameters, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s is attached to %s with other parameters (spec.parameters)%s%s: until that ends, only pods and tickets with the same parameters can have it there", r.volume(), r.Node, r.forWhom(), r.asked())
	}},
	{SELinuxConflict, waits, lasts, evictionThere, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s is used at %s with another SELinux label%s: a kubelet mounts a volume with one label at a time", r.volume(), r.Node, r.forWhom())
	}},
	{UsedByOtherPod, waits, lasts, evictionThere, ofMore, CallNone, unavailable, func(r Reason) string {
		return fmt.Sprintf("%s serves one pod at a time (ReadWriteOncePod) and is in use%s", r.volume(), r.forWhom())
	}},
	{DriverNotRegistered, waits, lasts, noEviction, ofDriver, CallNone, notInstalled, func(r Reason) string {
		return fmt.Sprintf("driver %s is not registered", r.Driver)
	}},
	{NodeMissing, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("node %s does not exist", r.Node)
	}},
	{NodeUnmanaged, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("the kubelet of %s attaches and detaches volumes itself (enableControllerAttachDetach: false), so that Moorage may not do it there", r.Node)
	}},
	{NotGranted, waits, passes, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		if !r.Who.IsZero() {
			return fmt.Sprintf("it is not known yet whether %s was granted to %s", r.volume(), r.Who)
		}
		return fmt.Sprintf("%s is not granted yet", r.volume())
	}},
	{NoFreeWorker, waits, passes, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s waits for its turn to be %s %s: as many attaches and detaches of driver %s are under way as its AttachPolicy %s allows at a time (workers: %d)",
			r.volume(), map[bool]string{true: "attached to", false: "detached from"}[r.Detail == string(Attaching)], r.Node, r.Driver, r.Policy, r.Limit)
	}},
	{Attaching, waits, passes, noEviction, ofMore, CallAttach, unfit, func(r Reason) string {
		return fmt.Sprintf("%s is being attached to %s", r.volume(), r.Node)
	}},
	{AttachFailed, waits, lasts, noEviction, ofMore, CallAttach, unfit, func(r Reason) string {
		return fmt.Sprintf("attaching %s to %s failed and will be tried again: %s", r.volume(), r.Node, r.said())
	}},
	{NotReported, waits, passes, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s is attached to %s, and the node's status does not say so yet (volumesAttached), for which the kubelet waits: that is written next", r.volume(), r.Node)
	}},
	{Detaching, waits, passes, noEviction, ofMore, CallDetach, unfit, func(r Reason) string {
		return fmt.Sprintf("%s is being detached from %s", r.volume(), r.Node)
	}},
	{DetachFailed, waits, lasts, noEviction, ofMore, CallDetach, unfit, func(r Reason) string {
		return fmt.Sprintf("detaching %s from %s failed and will be tried again: %s", r.volume(), r.Node, r.said())
	}},
	{DetachUnanswered, waits, lasts, noEviction, ofMore, CallDetach, unfit, Reason.detachUnanswered},
	{KeptByFinalizer, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s is detached from %s, but its VolumeAttachment %s stays because of the finalizer %s: whoever set that has to take it off. Until then the volume goes nowhere else",
			r.volume(), r.Node, ledger.AttachmentName(r.Volume, r.Node), r.Detail)
	}},
	{InUse, waits, passes, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s is still in use at %s: its kubelet reports it in volumesInUse", r.volume(), r.Node)
	}},
	{InUseUnexplained, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s may be in use at %s: its kubelet reports it in volumesInUse, though it has no VolumeAttachment and no pod there. "+
			"Look there whether it is mounted. If it is not, restart the kubelet of %s; if that goes on to list it, power the machine off and give its node the taint node.kubernetes.io/out-of-service", r.volume(), r.Node, r.Node)
	}},
	{StagedAtNode, waits, lasts, noEviction, ofMore, CallNone, unfit, Reason.stagedAtNode},
	{InUseUnknown, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		if r.Seconds > 0 {
			return fmt.Sprintf("%s may be in use at %s: %s. %s%s; at once when %s", r.volume(), r.Node, r.Detail, forcedIn, time.Duration(r.Seconds)*time.Second, r.waysToKnow())
		}
		if r.Detail != "" {
			return fmt.Sprintf("%s may be in use at %s: %s. It is known when %s", r.volume(), r.Node, r.Detail, r.waysToKnow())
		}
		return fmt.Sprintf("%s may be in use at %s: its kubelet has not reported since the node object was made", r.volume(), r.Node)
	}},
	{NodeUnreachable, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s may be in use at %s, %s. %s", r.volume(), r.Node, r.howUnreachable(), r.waysOut())
	}},
	{DetachDelayed, waits, passes, noEviction, ofMore, CallDetach, unfit, func(r Reason) string {
		return fmt.Sprintf("%s is kept at %s until %s, in case its pod comes back (detachDelay)", r.volume(), r.Node, time.Unix(r.Until, 0).UTC().Format(time.RFC3339))
	}},
	{ForeignAttachment, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s has a VolumeAttachment at %s that somebody else made: %s, which is not the name that Moorage gives it. Moorage does not delete it; its maker has to", r.volume(), r.Node, r.Detail)
	}},
	{TooManyTickets, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%d tickets of this namespace, or fewer whose volumes have many users, already wait for %s, which is as many as are looked at: this one is next when some of them are granted or deleted", r.Limit, r.Node)
	}},
	{SlotsNotKept, waits, lasts, noEviction, ofMore, CallNone, unfit, Reason.slotsNotKept},
	{NeverAttached, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("pods use %s without an attachment, so that Moorage can't keep it away from nodes: end this ticket, and make sure by other means that no pod uses the volume", r.volume())
	}},
	{NoNode, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		if r.Detail == "" {
			return "no node is ready and takes pods"
		}
		return fmt.Sprintf("no node can take its volumes. At %s, which comes nearest: %s", r.Node, r.Detail)
	}},
	{LeavesNode, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("the ticket moves away from %s, which %s (it says onDrain: Move), to a node that can take its volumes", r.Node, r.Detail)
	}},
	{VolumeMissing, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("the PersistentVolume of claim %s does not exist, or has not been seen yet", r.Claim)
	}},
	{NodeReplaced, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		if r.Left {
			return fmt.Sprintf("%s was left attached to the machine with systemUUID %s when its detach failed, and another machine has the name %s now. Detach the volume from the first one by hand, then delete its VolumeHold", r.volume(), r.Detail, r.Node)
		}
		return fmt.Sprintf("%s was attached to the machine with nodeID %s, and %s has another nodeID now: it is another machine, or its driver has renamed it. Detach the volume from %s by hand, then delete VolumeAttachment %s", r.volume(), r.Detail, r.Node, r.Detail, ledger.AttachmentName(r.Volume, r.Node))
	}},
	{VolumeReplaced, waits, lasts, noEviction, ofMore, CallNone, unfit, func(r Reason) string {
		return fmt.Sprintf("%s stays at %s: VolumeAttachment %s was made for another disk than its PersistentVolume names now, and to delete it would detach the wrong disk. "+
			"Detach the disk that it was made for by hand, take the finalizers off the VolumeAttachment, and only then delete it", r.volume(), r.Node, r.Detail)
	}},
}

// waysToKnow names the proofs that a volume is unused at a node whose kubelet may have forgotten it.
// Volumes of iSCSI and Fibre Channel have no VolumeAttachment to delete: their hold is written again. If
// several machines may have it mounted, no boot proves anything.
func (r Reason) waysToKnow() string {
	const boot, taint = "the machine is rebooted", "is known to be powered off and has the taint node.kubernetes.io/out-of-service"
	ways := boot + ", " + taint
	nothing := r.Volume.NoAttach() || r.Detail == forgetfulLeft || r.Detail == forgetfulTaken || strings.HasSuffix(r.Detail, unattached)
	switch several := strings.HasPrefix(r.Detail, severalMachines); {
	case r.Detail == unsaid:
		return "moorage-node there has looked, or the machine " + taint
	case r.Detail == unread:
		return "moorage-node there can read what its NodeMountReport has as unknown, or the machine " + taint
	case several && nothing:
		return "the machine " + taint
	case several:
		ways = "the machine " + taint
	case nothing:
		return boot + ", or " + taint
	case r.Detail == forgetfulUnseen:
		ways = "moorage-node there has looked twice, " + ways
	}
	return ways + ", or somebody who has looked there deletes its VolumeAttachment"
}

func (r Reason) stagedAtNode() string {
	text := fmt.Sprintf("%s is staged or mounted at %s, though its kubelet does not report it in volumesInUse: moorage-node has found it there, and its NodeMountReport has the path. It goes once it is unmounted there", r.volume(), r.Node)
	if r.Detail != "" {
		return text + "; " + r.Detail
	}
	return text
}

func (r Reason) byPolicy() string {
	if r.Policy == "" {
		return ""
	}
	return ", AttachPolicy " + r.Policy + " sets that limit"
}

func (r Reason) noFreeSlot() string {
	policy := r.byPolicy()
	if r.Detail == atAttach {
		free := "no free slot"
		if r.Used < r.Limit {
			free = "too few free slots for all volumes of the pod"
		}
		return fmt.Sprintf("%s is not attached to %s yet: %s of driver %s (%d of %d used%s). It is attached when another volume of the driver has left the node, or the limit is raised. "+
			"If neither is to be expected, delete the pod, so that it is placed anew", r.volume(), r.Node, free, r.Driver, r.Used, r.Limit, policy)
	}
	if r.Needed > 1 {
		return fmt.Sprintf("too few free slots of driver %s (%d of %d used, %d needed%s)", r.Driver, r.Used, r.Limit, r.Needed, policy)
	}
	return fmt.Sprintf("no free slot of driver %s (%d of %d used%s)", r.Driver, r.Used, r.Limit, policy)
}

// slotsNotKept names the volume for which slots are kept elsewhere, or says that the node has too few at
// all.
func (r Reason) slotsNotKept() string {
	if r.Volume.IsZero() {
		return fmt.Sprintf("the ticket needs %d slots of driver %s, and %s has %d in all%s: it can't be granted there, and no slot that comes free is kept for it", r.Needed, r.Driver, r.Node, r.Limit, r.byPolicy())
	}
	return fmt.Sprintf("%s, and none that comes free is kept for this ticket: %s waits for a slot at %s%s, which comes first", r.noFreeSlot(), r.volume(), r.Node, r.forWhom())
}

func (r Reason) nodeExhausted() string {
	if r.Detail == "" {
		return fmt.Sprintf("driver %s has no room for another volume (it answered ResourceExhausted)", r.Driver)
	}
	return fmt.Sprintf("driver %s has no room for another volume: %s", r.Driver, r.said())
}

func (r Reason) detachUnanswered() string {
	return fmt.Sprintf("%s is being detached from %s%s, and driver %s has neither confirmed nor refused that. See whether the driver's attacher runs, and what its log says about VolumeAttachment %s. "+
		"If driver and attacher are gone for good, detach the volume by hand, and only then take the VolumeAttachment's finalizers off",
		r.volume(), r.Node, r.since(), r.Driver, ledger.AttachmentName(r.Volume, r.Node))
}
