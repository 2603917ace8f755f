// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Labels and annotations.
const (
	// LabelEnforce on a Namespace, with value "true", opts its pods in to
	// Moorage's scheduling.
	LabelEnforce = "moorage.dev/enforce"

	// AnnotationVolumeStatus on a Pod holds a VolumeStatus as JSON. The webhook
	// stamps a placeholder at creation; afterwards the controller alone writes it.
	AnnotationVolumeStatus = "moorage.dev/volume-status"

	// AnnotationTransitions on a VolumeAttachment of an exclusive volume is the fencing token (decimal):
	// a number that rises from attachment to attachment, also from leader to leader.
	AnnotationTransitions = "moorage.dev/transitions"

	// AnnotationHolder on a VolumeAttachment of an exclusive volume says for which Node, boot, machine and
	// pod it was made, as JSON with nodeUID, bootID, systemUUID and podUID. A VolumeHold says it in its
	// place where there is one.
	AnnotationHolder = "moorage.dev/holder"

	// AnnotationConfirmed on a VolumeAttachment gets a new value before its volume is put (back) into
	// node.status.volumesAttached. The write raises the resource version, so any DELETE still in flight
	// with the older version as its precondition fails. A foreign attachment with a failed attach gets
	// it once: its attacher tries a changed object at once.
	AnnotationConfirmed = "moorage.dev/confirmed"

	// AnnotationWanted on a VolumeAttachment under deletion says that the volume is wanted again at
	// that very node; its value names the claimant. The attacher may then end the deletion without an
	// unpublish. Its writer takes the volume to be there still once the object is gone, and makes a new
	// VolumeAttachment for that node before any other.
	AnnotationWanted = "moorage.dev/wanted"

	// AnnotationBeside on a VolumeAttachment of an exclusive volume names a node where the volume may
	// stay published at the same time: the source of a live migration. It is about the attachment that
	// was there when this one was made, and stays when the migration is over.
	AnnotationBeside = "moorage.dev/beside"

	// AnnotationCooperative on a VolumeAttachment says that Moorage made it in Cooperative
	// mode for tickets alone. kube-controller-manager knows the attachment only once it reports the volume in
	// volumesAttached, and until then attaches the volume elsewhere without waiting.
	AnnotationCooperative = "moorage.dev/cooperative"

	// AnnotationStrays on a PersistentVolume names the nodes, by the driver's IDs and separated by
	// commas, where the driver lists the volume as published without a VolumeAttachment.
	// moorage-attacher writes it, and takes it off when it is over.
	AnnotationStrays = "moorage.dev/published-unaccounted"

	// AnnotationRenewed on a VolumeTicket with spec.ttlSeconds gets a new value if the ticket is needed
	// for longer: the controller counts the time again from when it sees that. The first 64 characters
	// count; a time is usual.
	AnnotationRenewed = "moorage.dev/renewed"
	// AnnotationSession on a VolumeTicket of package api/ticket has another value after each Acquire:
	// earlier handles neither end the ticket nor let go of its volumes any more.
	AnnotationSession = "moorage.dev/session"
	// AnnotationLetsGo on a VolumeTicket that is asked to yield says that its user has let go of its
	// volumes: its value is the lastTransitionTime of the condition Yielding. The volumes then go to
	// their claimant, and the ticket asks on.
	AnnotationLetsGo = "moorage.dev/lets-go"

	// LabelOperation on a VolumeTicket that the controller has made so that a driver can
	// carry an operation out says which one: a VolumeOperation.
	LabelOperation = "moorage.dev/operation"
	// AnnotationOperationOf on such a ticket names the object that asks for the operation,
	// for people.
	AnnotationOperationOf = "moorage.dev/operation-of"

	// AnnotationRelease on the ValidatingAdmissionPolicyBinding by which only Moorage writes
	// volumesAttached names the namespace of the release that created it in Standalone mode.
	AnnotationRelease = "moorage.dev/release"

	// AnnotationHandOver with value true on that binding asks a controller that is installed
	// for Cooperative mode to end Standalone mode. It goes with the binding.
	AnnotationHandOver = "moorage.dev/hand-over"

	// LabelMode on the controller's Lease is the leader's mode: standalone or cooperative.
	LabelMode = "moorage.dev/mode"

	// LabelManagedBy with value ManagedBy marks the objects that Moorage made. In Standalone mode the
	// controller also deletes VolumeAttachments without it, if they have the name that follows from
	// their volume and node.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "moorage"
	// LabelPartOf with value PartOf marks all that the chart makes, and what Moorage
	// makes beside it for the cluster.
	LabelPartOf = "app.kubernetes.io/part-of"
	PartOf      = "moorage"
)

// Names of processes, as they appear in pod.spec.schedulerName, in Leases and
// as field managers.
const (
	SchedulerName  = "moorage-scheduler"
	ControllerName = "moorage-controller"
	WebhookName    = "moorage-webhook"
	ExtenderName   = "moorage-extender"
	NodeName       = "moorage-node"
)

// Condition types.
const (
	// TicketGranted is a VolumeTicket's condition: the slots are reserved at its
	// node, and each of its exclusive volumes is there, or free, or promised.
	TicketGranted = "Granted"
	// TicketSatisfied is a VolumeTicket's condition: each of its volumes is
	// attached at its node.
	TicketSatisfied = "Satisfied"

	// TicketYielding is a VolumeTicket's condition, there only while it is True: a claimant that ranks
	// before has wanted its volumes. It has the time that the message names to let go of them. The
	// condition stays until that time is over, also if the claimant goes.
	TicketYielding = "Yielding"

	// PolicyInEffect is an AttachPolicy's condition, there only while it is False:
	// another policy for the same driver and class counts, there is no such driver or
	// class, or the controller does not run with what one of its fields needs.
	PolicyInEffect = "InEffect"

	// ReasonShadowed is why a policy is not in effect: an older one is for the same
	// driver and class. The message names it.
	ReasonShadowed = "Shadowed"
	// ReasonDriverUnknown says why a policy is not in effect: there is no CSIDriver with its driver's
	// name, and no node registers it.
	ReasonDriverUnknown = "DriverUnknown"
	// ReasonClassUnknown is why a policy is not in effect: its StorageClass does not
	// exist.
	ReasonClassUnknown = "ClassUnknown"
	// ReasonNetworkFencesOff is why a policy's forceDetach.networkFence is not in effect: the
	// controller does not run with --network-fences. The rest of the policy is.
	ReasonNetworkFencesOff = "NetworkFencesOff"

	// ReasonOperationTicketsOff is why a policy's attachFor and detachFor are not in effect: the
	// controller does not run with --operation-tickets. The rest of the policy is.
	ReasonOperationTicketsOff = "OperationTicketsOff"
	// ReasonWorkersNotCounted is why a policy's workers are not in effect: in Cooperative mode
	// kube-controller-manager attaches and detaches, and counts none. The rest of the policy is.
	ReasonWorkersNotCounted = "WorkersNotCounted"

	// HoldAttached is a VolumeHold's condition, written only where the volume is not attached as it
	// should be: False with the reason AttachFailed and the driver's words while the driver refuses to
	// attach it, and with the reason Detached once it has left its last node; Unknown while its place
	// is unknown. That it is attached is said by its VolumeAttachment, and not repeated.
	HoldAttached = "Attached"
	// HoldDetachPending is a VolumeHold's condition: the volume is not wanted at its node any more, and
	// the detach is not over. Its reason is the cause of its wait. False, with the reason
	// DetachDelayed, while the policy's detachDelay keeps the volume there.
	HoldDetachPending = "DetachPending"
	// HoldSafeToDetach is a VolumeHold's condition: the kubelet of the holder's
	// node does not report the volume as in use, and no pod there wants it.
	HoldSafeToDetach = "SafeToDetach"

	// PodSafeToMount is a Pod's condition that sums up its VolumeStatus: True
	// when every attachable volume of the pod is safe to mount.
	PodSafeToMount = "moorage.dev/SafeToMount"
	// PodPlaceable is a condition of a Pod without a node that the extender refused every node: the
	// cause of a refusal has changed since. The write has a stock kube-scheduler try the pod again.
	PodPlaceable = "moorage.dev/Placeable"
)

// Reasons that belong to the API itself. All others are the arbiter's codes,
// listed in docs/reasons.md.
const (
	// ReasonPending: the controller has not looked yet. The webhook's
	// placeholder says so of each volume.
	ReasonPending = "Pending"
	// ReasonGranted and ReasonSatisfied are those of a True condition.
	ReasonGranted   = "Granted"
	ReasonSatisfied = "Satisfied"
	// ReasonVolumeWait is the reason of PodScheduled=False for a wait that no new node could lift. It
	// is deliberately not Unschedulable: a cluster autoscaler would add nodes for that.
	ReasonVolumeWait = "VolumeWait"
)

// volumeHoldNameBytes of the digest are kept: 160 bits, which fit a table
// column and are far from any accidental collision. Readers compare spec.driver
// and spec.handle, so a collision would be noticed and not merged.
const volumeHoldNameBytes = 20

// VolumeHoldName returns the name of the VolumeHold of a volume, given its CSI
// driver (or in-tree plugin name) and volume handle. It is deterministic, so
// that create is a claim on the volume: a second one gets AlreadyExists. The
// driver's length goes into the digest, so that no two pairs share an input.
func VolumeHoldName(driver, handle string) string {
	digest := sha256.New()
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(driver)))
	digest.Write(size[:])
	digest.Write([]byte(driver))
	digest.Write([]byte(handle))
	return "vh-" + hex.EncodeToString(digest.Sum(nil)[:volumeHoldNameBytes])
}
