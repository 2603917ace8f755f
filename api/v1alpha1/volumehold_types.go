// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeHold records what the VolumeAttachment of a volume can't say: a ticket, a forced detach, a failure to
// report, or the holder of a volume without VolumeAttachments. Other exclusive volumes have AnnotationHolder on
// their VolumeAttachment. Its name is VolumeHoldName(driver, handle). Only the controller writes it. There is no
// status subresource, so that a new one is a single write; holder and next change by compare-and-swap on the
// resource version.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=volumeholds,scope=Cluster,shortName=vh,categories=moorage
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.status.summary.claim`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.holder.node`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.status.summary.holder`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.summary.state`
// +kubebuilder:printcolumn:name="Waiting",type=string,JSONPath=`.status.summary.waiting`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.status.summary.volume`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VolumeHold struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the volume's identity. It never changes.
	Spec VolumeHoldSpec `json:"spec"`

	// status has the volume's holder and the next holder.
	// +optional
	Status VolumeHoldStatus `json:"status,omitempty"`
}

// VolumeHoldList is a list of VolumeHolds.
//
// +kubebuilder:object:root=true
type VolumeHoldList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VolumeHold `json:"items"`
}

// How long a VolumeHold's driver and handle may be, in characters: the maxLength of its
// schema. No VolumeHold can be written of a volume with longer ones.
const (
	MaxDriverLength = 253
	MaxHandleLength = 4096
)

// VolumeHoldSpec is a volume's identity. Two PersistentVolumes with the same
// pair are one volume.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a hold is of one volume for ever: the controller makes another one for another volume"
type VolumeHoldSpec struct {
	// driver is the CSI driver's name, after translation of in-tree volumes; for
	// iSCSI and FC the plugin's name, such as kubernetes.io/iscsi.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver"`

	// handle is the driver's own identifier of the volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Handle string `json:"handle"`
}

// VolumeHoldStatus has the volume's holder and the next holder. It is replaced as a whole, by one
// writer.
//
// +structType=atomic
type VolumeHoldStatus struct {
	// persistentVolumes are the names of the PersistentVolumes with this driver
	// and handle, sorted; none for an inline volume. At most 256 are listed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	PersistentVolumes []string `json:"persistentVolumes,omitempty"`

	// holder is the node that has the volume, with its tickets; or, without a node, the tickets that
	// keep the volume detached. Absent when the volume is free.
	// +optional
	Holder *Holder `json:"holder,omitempty"`

	// next is the claimant that the volume is promised to, after the holder's detach; without a node,
	// it stays detached then. Absent without a promise.
	// +optional
	Next *NextHolder `json:"next,omitempty"`

	// waiting are the tickets, other than next, that claim the volume at other
	// nodes. At most 256 are listed.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=256
	Waiting []TicketReference `json:"waiting,omitempty"`

	// transitions rises whenever the volume changes its node, and serves as a fencing token. The numbers
	// of all volumes rise together: they are not consecutive. Absent in a new record without a node.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Transitions int64 `json:"transitions,omitempty"`

	// grants counts the writes of this object that came before the grant of a ticket. Each makes
	// another version of it, also where it says what the grant needs already, so that no
	// write which was decided on before can change it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Grants int64 `json:"grants,omitempty"`

	// conditions are Attached, DetachPending and SafeToDetach, each present only
	// while there is something to say: Attached is False with the reason
	// AttachFailed while the driver refuses to attach the volume, DetachPending
	// True while it should leave its node and can't. The messages quote the driver.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// forceDetach is present while a rule for a forced detach is being timed, and afterwards as long as
	// nothing is taken by it. For a shared volume at several nodes that don't answer it is the longest
	// time: a controller that takes over goes on with that, and starts over with the others.
	// +optional
	ForceDetach *ForceDetachProgress `json:"forceDetach,omitempty"`

	// fenced lists the nodes whose kubelets are not believed about the volume, at most 256 and each
	// once. Moorage's controller writes the list, and the next leader uses it. It adds a node:
	//   - with a rule, before it takes the volume out of that node's volumesAttached by this rule for a
	//     forced detach;
	//   - without a rule, when the kubelet may have the volume mounted and not report it: after a
	//     forced detach that was given up or is over, after another component took a volume in use out
	//     of volumesAttached, or when the Node was made again.
	// An entry is about one Node object, one boot of one machine and one VolumeAttachment. It is
	// removed when the machine has booted again, when the Node is gone, or when its kubelet had
	// reported that the volume was not in use and the rule has ended.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=256
	Fenced []FencedNode `json:"fenced,omitempty"`

	// summary is what kubectl get shows: derived from the rest, for people. Programs read the other
	// fields.
	// +optional
	Summary *HoldSummary `json:"summary,omitempty"`
}

// Holder is the node that has a volume, with its claimants.
type Holder struct {
	// node is the Node's name; absent when the volume is kept from every node, for a
	// ticket with spec.detached.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// nodeUID is the UID of the Node object for which the volume was granted, or of the present Node of
	// the name once it can be believed about the volume. A Node that was made again by the same boot
	// may have the volume in use without listing it.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	NodeUID types.UID `json:"nodeUID,omitempty"`

	// bootID is status.nodeInfo.bootID of that Node; absent if it has none. A value longer than 128
	// bytes is replaced by its SHA-256, "sha256:…", like a systemUUID.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BootID string `json:"bootID,omitempty"`

	// systemUUID is status.nodeInfo.systemUUID of that Node; absent if it has none. Another boot counts
	// only of the same machine.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SystemUUID string `json:"systemUUID,omitempty"`

	// requesters are the tickets that claim the volume at the node, by UID. None when the volume has no
	// claimant any more and is not detached yet. At most 256 are listed.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=256
	Requesters []TicketReference `json:"requesters,omitempty"`
}

// NextHolder is the node and the ticket that a volume is promised to.
type NextHolder struct {
	// node is the Node's name; absent when the ticket has spec.detached.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// nodeUID is the UID of the Node object.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	NodeUID types.UID `json:"nodeUID,omitempty"`

	// ticket is the ticket that the volume is promised to.
	// +required
	Ticket TicketReference `json:"ticket"`
}

// TicketKind says what a ticket is.
// +kubebuilder:validation:Enum=Pod;VolumeTicket
type TicketKind string

// The kinds of tickets: a bound pod is its own ticket, every other one is an
// object.
const (
	TicketKindPod          TicketKind = "Pod"
	TicketKindVolumeTicket TicketKind = "VolumeTicket"
)

// TicketReference names a ticket: a VolumeTicket, or a pod that is its own.
//
// +structType=atomic
type TicketReference struct {
	// kind of the object.
	// +required
	Kind TicketKind `json:"kind"`

	// namespace of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the object.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid"`
}

// ForceDetachRule is a rule by which a volume may be detached without the kubelet's report that it is
// not in use.
// +kubebuilder:validation:Enum=OutOfService;FencedCondition;NetworkFence;NodeShutdown;UnpublishFences;AfterPodGone;AfterUnreachable
type ForceDetachRule string

// The rules for a forced detach. The node is not Ready in any of them.
const (
	// ForceDetachOutOfService: the node has the out-of-service taint.
	ForceDetachOutOfService ForceDetachRule = "OutOfService"
	// ForceDetachFencedCondition: the node has the condition that AttachPolicy
	// forceDetach.fencedCondition names.
	ForceDetachFencedCondition ForceDetachRule = "FencedCondition"
	// ForceDetachNetworkFence: the driver's storage has cut the machine off, by a
	// NetworkFence that AttachPolicy forceDetach.networkFence asks for.
	ForceDetachNetworkFence ForceDetachRule = "NetworkFence"
	// ForceDetachNodeShutdown: the node has the taint
	// node.cloudprovider.kubernetes.io/shutdown, and AttachPolicy unpublishFences.
	ForceDetachNodeShutdown ForceDetachRule = "NodeShutdown"
	// ForceDetachUnpublishFences: AttachPolicy forceDetach.afterUnreachable and
	// unpublishFences.
	ForceDetachUnpublishFences ForceDetachRule = "UnpublishFences"
	// ForceDetachAfterPodGone: AttachPolicy forceDetach.afterPodGone.
	ForceDetachAfterPodGone ForceDetachRule = "AfterPodGone"
	// ForceDetachAfterUnreachable: AttachPolicy forceDetach.afterUnreachable.
	ForceDetachAfterUnreachable ForceDetachRule = "AfterUnreachable"
)

// FencedNode is a node whose kubelet is not believed about a volume. While rule is set, the volume is
// being taken, or was taken, from the node by that rule: as long as the node stays not Ready, its
// kubelet's last report does not count. Without a rule, the volume counts as in use while it is
// attached there in that boot, also when it is attached again: a kubelet that restarts does not report
// a mounted volume that volumesAttached does not name.
type FencedNode struct {
	// node is the Node's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// nodeUID is the UID of the Node object, also when it is gone; absent when the
	// controller never saw it.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	NodeUID types.UID `json:"nodeUID,omitempty"`

	// bootID is status.nodeInfo.bootID of that Node; absent if it has none. Another boot of the machine
	// ends its mounts.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BootID string `json:"bootID,omitempty"`

	// systemUUID is status.nodeInfo.systemUUID of that Node; absent if it has none, and "?" for any of
	// several machines with the node's name. Another machine with the node's name says nothing about
	// this one.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SystemUUID string `json:"systemUUID,omitempty"`

	// attachmentUID is the UID of the VolumeAttachment; absent for a volume without
	// one, such as iSCSI or FC.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	AttachmentUID types.UID `json:"attachmentUID,omitempty"`

	// rule is the rule for the forced detach of the volume from the node; absent when that rule has
	// ended, or none applied.
	// +optional
	Rule ForceDetachRule `json:"rule,omitempty"`

	// since is when the controller first wrote this entry, by its own clock. It is for
	// people; no rule counts from it.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// inUse says that the kubelet did not report the volume as unused: its last list named the volume,
	// or there was no list of that Node.
	// +optional
	InUse bool `json:"inUse,omitempty"`

	// reported says that the machine may have mounted a volume without VolumeAttachments, though the
	// hold gives it to another node or to none: the Node named it in volumesAttached when it was
	// deleted, or was about to, or another component took it out of there. Nothing else says so.
	// +optional
	Reported bool `json:"reported,omitempty"`

	// notReadySince is the lastTransitionTime of the Node's condition Ready, copied when
	// the rule began to apply; absent without a rule, and when the Node was gone. It is
	// only compared with the Node's for being the same, never with a clock: another time
	// means that the node was Ready in between, and the rule has ended.
	// +optional
	NotReadySince *metav1.Time `json:"notReadySince,omitempty"`

	// leaseRenewed is the spec.renewTime of the node's Lease, copied at the same moment
	// and compared in the same way; absent when the Lease had not been read.
	// +optional
	LeaseRenewed *metav1.MicroTime `json:"leaseRenewed,omitempty"`
}

// ForceDetachProgress is how far a rule's time has run. Seconds that a process
// saw pass are kept and not a time of day, since clocks of different machines
// are never compared.
type ForceDetachProgress struct {
	// rule that is being timed.
	// +required
	Rule ForceDetachRule `json:"rule"`

	// node to force.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// nodeUID is the UID of the Node object, also when it is gone. Another UID means that a kubelet was
	// alive in between, and the time starts over.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	NodeUID types.UID `json:"nodeUID,omitempty"`

	// notReadySince is the lastTransitionTime of the node's condition Ready; absent
	// when the Node is gone. It is compared with the node's for being the same, and
	// with no clock: another one means that the node was Ready in between, and the
	// time starts over.
	// +optional
	NotReadySince *metav1.Time `json:"notReadySince,omitempty"`

	// leaseRenewed is renewTime of the node's Lease. It is compared for being the
	// same, and with no clock: another one means that the kubelet was alive in
	// between, and the time starts over.
	// +optional
	LeaseRenewed *metav1.MicroTime `json:"leaseRenewed,omitempty"`

	// elapsedSeconds that controllers have seen pass so far.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ElapsedSeconds int64 `json:"elapsedSeconds,omitempty"`
}

// HoldState is a VolumeHold in one word, for the STATE column.
type HoldState string

// The states that the summary of a hold can show.
const (
	HoldStateFree          HoldState = "Free"
	HoldStateHeld          HoldState = "Held"
	HoldStateAttachFailed  HoldState = "AttachFailed"
	HoldStateDetachPending HoldState = "DetachPending"
	HoldStateUnknown       HoldState = "Unknown"
	HoldStateDetached      HoldState = "Detached" // kept from every node, for tickets with spec.detached
)

// HoldSummary is what kubectl get volumeholds shows.
type HoldSummary struct {
	// volume is the PersistentVolume's name, or the handle of an inline volume.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Volume string `json:"volume,omitempty"`

	// claim is the claim's namespace/name.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Claim string `json:"claim,omitempty"`

	// holder is the namespace/name of the requester, and how many more there are.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Holder string `json:"holder,omitempty"`

	// state in one word.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	State HoldState `json:"state,omitempty"`

	// waiting names the pods and tickets that wait for the volume, and where.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Waiting string `json:"waiting,omitempty"`
}
