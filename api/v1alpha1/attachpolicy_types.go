// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AttachPolicy says how volumes of a driver are attached and detached. A policy with a storageClassName
// is for that class's volumes, and comes before the policy without one. Of two for the same pair the
// older counts, then the smaller name. Without any, everything is as users know it from Kubernetes: see
// WithDefaults.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=attachpolicies,scope=Cluster,shortName=ap,categories=moorage
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driver`
// +kubebuilder:printcolumn:name="StorageClass",type=string,JSONPath=`.spec.storageClassName`
// +kubebuilder:printcolumn:name="SlotsMax",type=integer,JSONPath=`.spec.slots.max`
// +kubebuilder:printcolumn:name="Headroom",type=integer,JSONPath=`.spec.slots.headroom`
// +kubebuilder:printcolumn:name="Workers",type=integer,JSONPath=`.spec.workers`
// +kubebuilder:printcolumn:name="DetachDelay",type=string,JSONPath=`.spec.detachDelay`
// +kubebuilder:printcolumn:name="AttachFor",type=string,JSONPath=`.spec.attachFor`,priority=1
// +kubebuilder:printcolumn:name="DetachFor",type=string,JSONPath=`.spec.detachFor`,priority=1
// +kubebuilder:printcolumn:name="NotInEffect",type=string,JSONPath=`.status.conditions[?(@.type=="InEffect")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AttachPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy.
	Spec AttachPolicySpec `json:"spec"`

	// status is written by the controller alone.
	// +optional
	Status AttachPolicyStatus `json:"status,omitzero"`
}

// AttachPolicyList is a list of AttachPolicies.
//
// +kubebuilder:object:root=true
type AttachPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AttachPolicy `json:"items"`
}

// VolumeOperation is a driver's work on a volume at a user's request. Snapshot is also a group
// snapshot.
// +kubebuilder:validation:Enum=Snapshot;Clone;Expansion
type VolumeOperation string

// The operations for which a policy may say where the volume has to be.
const (
	OperationSnapshot  VolumeOperation = "Snapshot"
	OperationClone     VolumeOperation = "Clone"
	OperationExpansion VolumeOperation = "Expansion"
)

// AttachPolicySpec is how volumes of a driver are handled. A field that is absent in a policy with a
// storageClassName is as in the driver's policy without one; absent there as well, it has Kubernetes'
// meaning. Durations are written as Go does, such as 6m or 1h30m. A node's slots and the calls to a
// driver do not belong to a class: a policy for a class can't set them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.storageClassName) || !has(self.slots) && !has(self.workers)",message="slots and workers are of the driver, whatever the class: set them in a policy without storageClassName"
// +kubebuilder:validation:XValidation:rule="!has(self.storageClassName) || !has(self.forceDetach) || !has(self.forceDetach.networkFence)",message="a machine is cut off from a whole driver, whatever the class: set forceDetach.networkFence in a policy without storageClassName"
// +kubebuilder:validation:XValidation:rule="!has(self.attachFor) || !has(self.detachFor) || !self.attachFor.exists(o, o in self.detachFor)",message="for one operation a volume is either attached or detached: name it in attachFor or in detachFor, and not in both"
type AttachPolicySpec struct {
	// driver is the CSI driver's name, after translation of in-tree volumes; for
	// iSCSI and FC the plugin's name, such as kubernetes.io/iscsi.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?(/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="name a CSIDriver (kubectl get csidrivers), or a plugin such as kubernetes.io/iscsi"
	Driver string `json:"driver"`

	// storageClassName narrows the policy to volumes of a StorageClass.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`

	// slots lowers the number of the driver's volumes per node, of all classes.
	// +optional
	Slots *SlotPolicy `json:"slots,omitempty"`

	// detachDelay keeps an unwanted attachment for this long, so that a restarting pod finds its volume
	// there. It is given up at once when anyone wants the volume or the slot, and on drain, deletion or
	// shutdown of the node. Default 0s.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="write a duration as numbers with the units ms, s, m and h, such as 90s or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) <= duration('24h')",message="detachDelay is 24h at most: choose a shorter one"
	DetachDelay *metav1.Duration `json:"detachDelay,omitempty"`

	// forceDetach says when a volume leaves a node that is not Ready without the
	// kubelet's word.
	// +optional
	ForceDetach *ForceDetachPolicy `json:"forceDetach,omitempty"`

	// unpublishFences says that the driver's unpublish (ControllerUnpublishVolume) takes the machine's
	// access to the volume away: set it only if the driver's vendor says so. Then the taint
	// node.cloudprovider.kubernetes.io/shutdown of a node that is not Ready, and the time
	// forceDetach.afterUnreachable, are enough for a detach: the volume is attached elsewhere only
	// after the unpublish has succeeded, so that two nodes never write to it. Data that the machine had
	// not written yet is lost. Default false.
	// +optional
	UnpublishFences *bool `json:"unpublishFences,omitempty"`

	// workers is how many attaches and detaches of the driver may be under way at once, for all
	// classes. Without it there is no limit, as in the attach/detach controller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Workers *int32 `json:"workers,omitempty"`

	// liveMigration says that the driver can have an exclusive volume at two
	// nodes for as long as a ticket of type LiveMigration asks for it. Default false.
	// +optional
	LiveMigration *bool `json:"liveMigration,omitempty"`

	// +optional

	// attachFor are the operations that the driver carries out only while the volume is attached to
	// some node. While an operation is asked for, the controller keeps a ticket of that type, which has
	// the volume attached where it is, or at a node that Moorage chooses. A class's policy that
	// sets attachFor or detachFor, be it to an empty list, replaces both of the driver's policy.
	// Default none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	AttachFor []VolumeOperation `json:"attachFor,omitzero"`

	// detachFor are the operations that the driver carries out only while the volume is attached to no
	// node. While an operation is asked for, the controller keeps a ticket of that type, which waits
	// until the volume has no user, and keeps it from being attached then. Default none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	DetachFor []VolumeOperation `json:"detachFor,omitzero"`
}

// AttachPolicyStatus is what the controller says of a policy.
type AttachPolicyStatus struct {
	// conditions are InEffect, while it is False: the policy, or one of its fields, has no
	// effect. Its reason and its message say why.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// SlotPolicy lowers the number of a driver's volumes per node. It never raises
// what the node's CSINode states.
type SlotPolicy struct {
	// max is the most volumes of the driver that a node shall have; it matters
	// where it is below the CSINode's count, or where that states none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Max *int32 `json:"max,omitempty"`

	// headroom slots of each node are left free, for volumes that others attach.
	// Default 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Headroom *int32 `json:"headroom,omitempty"`
}

// ForceDetachNever is the value of forceDetach.afterPodGone with that no time forces a detach.
const ForceDetachNever = "Never"

// ForceDetachPolicy says when a volume leaves a node that is not Ready without
// the kubelet's word. A Ready node is never forced.
// +kubebuilder:validation:XValidation:rule="!has(self.afterPodGone) || self.afterPodGone != 'Never' || !has(self.afterUnreachable)",message="afterPodGone: Never says that no time forces a detach: leave out afterUnreachable, or give afterPodGone a time"
type ForceDetachPolicy struct {
	// afterPodGone is how long after the last pod object that used the volume at
	// the node is gone. Default 6m, as in the attach/detach controller. Never: no time forces a
	// detach, only evidence does, such as the taint node.kubernetes.io/out-of-service, as with
	// kube-controller-manager's flag --disable-force-detach-on-timeout. Where the driver's policy
	// says Never, one for a class that sets a time has that time all the same.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == 'Never' || self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="write Never, or a duration as numbers with the units ms, s, m and h, such as 90s or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) > duration('0s')",message="afterPodGone is above 0s: leave it out for the default of 6m"
	AfterPodGone string `json:"afterPodGone,omitempty"`

	// afterUnreachable is how long after the node became unreachable, whether its pods are gone or not.
	// Without unpublishFences only for nodes that are known to be dead by then: nothing fences them.
	// The time does not run while more than 55% of the nodes of a zone, or of the cluster, and at least
	// three, are unreachable: the network is likely to have failed, and pods at those nodes to run on. It
	// begins anew when fewer are unreachable. Nodes that are known to be off or fenced do not count.
	// Never, if absent.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="write a duration as numbers with the units ms, s, m and h, such as 90s or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('1m')",message="afterUnreachable is 1m or more: leave it out to never detach from an unreachable node whose pods are not gone"
	AfterUnreachable *metav1.Duration `json:"afterUnreachable,omitempty"`

	// fencedCondition is the type of a condition of Nodes that says that a machine writes to the
	// driver's volumes no more: it is powered off, or the storage has cut it off. It begins with
	// fenced.moorage.dev/, and its writer needs the right to use fencedconditions.moorage.dev by the
	// name after that. As long as a node that is not Ready has it with status True, set since its
	// kubelet was last heard of, the volumes leave that node at once. Its pods are not removed. An
	// empty string means none, for a class whose driver's policy has one.
	// +optional
	// +kubebuilder:validation:MaxLength=82
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^fenced[.]moorage[.]dev/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="fencedCondition is a condition type that begins with fenced.moorage.dev/, such as fenced.moorage.dev/ipmi"
	FencedCondition *string `json:"fencedCondition,omitempty"`

	// networkFence has the driver's storage cut off an unreachable node, by a NetworkFence of
	// csi-addons. Once the storage has confirmed that, the driver's volumes leave the node at once, as
	// long as it is not Ready. Its pods are not removed. A machine is cut off from the whole driver, so
	// that only a policy without a storageClassName may say this. The controller has to run with
	// --network-fences.
	// +optional
	NetworkFence *NetworkFencePolicy `json:"networkFence,omitempty"`
}

// NetworkFencePolicy says how a driver's storage cuts off nodes that can't be reached.
type NetworkFencePolicy struct {
	// className is the NetworkFenceClass (csiaddons.openshift.io) of the driver: its provisioner is the
	// policy's driver. The clients of a node that the driver's CSIAddonsNodes list for this class are
	// cut off.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClassName string `json:"className"`

	// afterUnreachable is how long after a node became unreachable a NetworkFence is made
	// for it: its pods can't write to the driver's volumes from then on, whether they run or
	// not. No fence is made while so many nodes are unreachable that forceDetach.afterUnreachable waits;
	// below some 15 seconds it is not known yet how many fail together.
	// Never, if absent: then only the NetworkFences count that others make.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="write a duration as numbers with the units ms, s, m and h, such as 90s or 1h30m"
	AfterUnreachable *metav1.Duration `json:"afterUnreachable,omitempty"`
}

// NetworkFencePrefix begins the types of Nodes' conditions in which the controller says that the
// storage of a driver, named after it, has cut the machine off.
const NetworkFencePrefix = "networkfence.moorage.dev/"

// FencedConditionPrefix is what the types of Nodes' conditions begin with that
// forceDetach.fencedCondition may name.
const FencedConditionPrefix = "fenced.moorage.dev/"
