// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeTicket is a request for volumes at a node. It is granted as a whole or not at all. Pods have no
// tickets: a bound pod is a claim by itself.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=volumetickets,scope=Namespaced,shortName=vt,categories=moorage
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Chosen",type=string,JSONPath=`.status.nodeName`
// +kubebuilder:printcolumn:name="Detached",type=boolean,JSONPath=`.spec.detached`,priority=1
// +kubebuilder:printcolumn:name="Granted",type=string,JSONPath=`.status.conditions[?(@.type=="Granted")].reason`,priority=1
// +kubebuilder:printcolumn:name="Satisfied",type=string,JSONPath=`.status.conditions[?(@.type=="Satisfied")].reason`,priority=1
// +kubebuilder:printcolumn:name="Yielding",type=string,JSONPath=`.status.conditions[?(@.type=="Yielding")].message`,priority=1
// +kubebuilder:printcolumn:name="OnDrain",type=string,JSONPath=`.spec.onDrain`,priority=1
// +kubebuilder:printcolumn:name="TTL",type=integer,JSONPath=`.spec.ttlSeconds`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Granted")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VolumeTicket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request. It never changes.
	Spec VolumeTicketSpec `json:"spec"`

	// status is written by the scheduler, which decides on the ticket, and by the controller.
	// +optional
	Status VolumeTicketStatus `json:"status,omitempty"`
}

// Node is the ticket's node: the node that it names, or that the controller has chosen; empty if none
// is chosen yet, and for a ticket with spec.detached.
func (t *VolumeTicket) Node() string {
	if t.Spec.Wherever {
		return t.Status.NodeName
	}
	return t.Spec.NodeName
}

// VolumeTicketList is a list of VolumeTickets.
//
// +kubebuilder:object:root=true
type VolumeTicketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VolumeTicket `json:"items"`
}

// VolumeTicketSpec is a ticket's request. It is written once: its rules are checked at its creation
// (oldSelf has no value then), and not again with each write of the status, of which they would be a
// quarter.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a ticket's spec never changes: delete the ticket and create another one"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || (has(self.nodeName) ? 1 : 0) + (has(self.wherever) && self.wherever ? 1 : 0) + (has(self.detached) && self.detached ? 1 : 0) == 1",message="a ticket is for one node, for wherever its volumes are, or for none: set spec.nodeName, or spec.wherever to true, or spec.detached to true, and exactly one of them"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.type != 'LiveMigration' || has(self.nodeName)",message="a ticket of type LiveMigration is for the node where its machine goes: set spec.nodeName"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.type != 'ShareManager' || !has(self.detached) || !self.detached",message="a share is served from a node: set spec.nodeName, or spec.wherever to true, in place of spec.detached for a ticket of type ShareManager"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || !has(self.parameters) || self.parameters.size() == 0 || !has(self.detached) || !self.detached",message="parameters say how volumes are attached at a node: leave spec.parameters out of a ticket with spec.detached"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || !has(self.parameters) || self.parameters.all(k, k.size() >= 1 && k.size() <= 63 && self.parameters[k].size() <= 256)",message="shorten spec.parameters: a key has 1 to 63 characters, a value at most 256"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || !has(self.onDrain) || self.onDrain != 'Move' || has(self.wherever) && self.wherever",message="a ticket that names its node does not move to another one: set onDrain to End or Stay, or wherever in place of nodeName"
type VolumeTicketSpec struct {
	// type says what the volumes are needed for; the ticket's priority follows
	// from it.
	// +required
	Type TicketType `json:"type"`

	// nodeName is the node for the volumes. Required unless wherever or detached is true.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`

	// wherever leaves the node to the controller: the volumes' present node; without one, the node with
	// the most room for them. status.nodeName has the node. A ticket that loses its volumes asks where
	// they are then. Not for type LiveMigration.
	// +optional
	Wherever bool `json:"wherever,omitempty"`

	// detached asks that the volumes be at no node, as for an offline expansion or a check of a file
	// system. While the ticket is granted no node gets them; it is satisfied while they are attached
	// nowhere. Not for types LiveMigration and ShareManager.
	// +optional
	Detached bool `json:"detached,omitempty"`

	// parameters say how the volumes are to be attached at their node. Moorage does not read them:
	// tickets with the same parameters share an attachment of a volume at a node, and a ticket with
	// others waits until these are gone. Pods have none. At most 16, with keys of up to 63 characters,
	// and values of up to 256.
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=16
	Parameters map[string]string `json:"parameters,omitempty"`

	// onDrain is the effect on the ticket when its node is cordoned (spec.unschedulable) or its Node is
	// being deleted. Default Stay. Move only together with wherever.
	// +optional
	OnDrain OnDrain `json:"onDrain,omitempty"`

	// volumes are granted together or not at all. The list is atomic: it is
	// written once, by one writer, and never merged.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.all(v, has(v.claim) != has(v.persistentVolume))",message="name either claim or persistentVolume in each entry"
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.exists(v, has(v.claim) == has(v.persistentVolume)) || self.transformMapEntry(i, v, {(has(v.claim) ? 'c/' + v.claim.name : 'p/' + v.persistentVolume): i}).size() == self.size()",message="name each volume once: leave the second entry out"
	Volumes []TicketVolume `json:"volumes"`

	// ttlSeconds ends a ticket this long after the controller first saw it,
	// counted by the controller's own clock, or after it first saw the value that the
	// annotation moorage.dev/renewed has. A ticket
	// that has neither this nor an owner, such as a copy that lost its owner, ends after an hour.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	TTLSeconds *int64 `json:"ttlSeconds,omitempty"`
}

// OnDrain is the effect on a ticket when its node is cordoned.
// +kubebuilder:validation:Enum=Stay;End;Move
type OnDrain string

// The effects on a ticket when its node is cordoned.
const (
	// OnDrainStay: the ticket stays unchanged, and a drain waits for its end.
	OnDrainStay OnDrain = "Stay"
	// OnDrainEnd: the controller deletes the ticket. A ticket with finalizers counts until these are
	// gone. A waiting ticket with wherever does not end: it moves.
	OnDrainEnd OnDrain = "End"
	// OnDrainMove: the ticket is asked to let go of its volumes (condition Yielding), loses its grant,
	// and has them again at a node that is not cordoned. Nor does it end when its Node is gone: it
	// moves.
	OnDrainMove OnDrain = "Move"
)

// TicketVolume names one volume, in exactly one of two ways.
//
// +structType=atomic
type TicketVolume struct {
	// claim is a PersistentVolumeClaim of the ticket's namespace.
	// +optional
	Claim *ClaimReference `json:"claim,omitempty"`

	// persistentVolume is the name of a PersistentVolume without a claim. Only
	// tickets in Moorage's own namespace may name one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PersistentVolume string `json:"persistentVolume,omitempty"`
}

// ClaimReference names a PersistentVolumeClaim of the ticket's namespace.
//
// +structType=atomic
type ClaimReference struct {
	// name of the claim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// uid of the claim. If given, a claim of the same name with another UID does not count.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID types.UID `json:"uid,omitempty"`
}

// VolumeTicketStatus is what became of a ticket. It is replaced as a whole, by one
// writer: tracking who owns which of its fields would be a sixth of the CPU that
// a grant costs the API server.
//
// +structType=atomic
type VolumeTicketStatus struct {
	// conditions are Granted, Satisfied and Yielding. The reason of a condition that is not True is the
	// arbiter's code, with the remedy in its message. Satisfied is True only while the ticket is
	// granted and its volumes are attached at its node. Granted is Unknown while the ticket waits: it
	// asks for as long as it exists. Yielding is there while it is True: the ticket must let go of its
	// volumes, for the claimant and within the time in its message.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// state is the conditions in a word: Satisfied, Granted, Yielding, or the reason why the ticket
	// does not have its volumes.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	State string `json:"state,omitempty"`

	// nodeName is the node that the controller has chosen for a ticket with spec.wherever; empty for
	// any other ticket, and if no node is found yet. It changes only while the ticket is not granted.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`

	// volumes are what the spec's volumes turned out to be.
	// +optional
	// +listType=map
	// +listMapKey=claim
	// +listMapKey=persistentVolume
	// +kubebuilder:validation:MaxItems=256
	Volumes []TicketVolumeStatus `json:"volumes,omitempty"`

	// epoch is the leaseTransitions of the scheduler's Lease at the last decision on the ticket. A new
	// leader writes its own into every ticket without a grant before it grants any, so that an older
	// leader's commit in flight fails on the resource version. It never falls.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch,omitempty"`

	// interruptions is how often in a row the ticket has lost its volumes to a claimant that ranks
	// before. It is granted again after a pause: 10 seconds after the first interruption, twice as long
	// after each further interruption, 5 minutes at most. When it has been satisfied for 10 minutes,
	// counting begins anew.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Interruptions int64 `json:"interruptions,omitempty"`

	// ttlElapsedSeconds is how much of spec.ttlSeconds controllers have counted
	// so far, so that a restart of the controller does not start it over.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLElapsedSeconds int64 `json:"ttlElapsedSeconds,omitempty"`

	// renewed is the value of the annotation moorage.dev/renewed since which ttlElapsedSeconds is
	// counted.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Renewed string `json:"renewed,omitempty"`

	// nodeGone is for how long the ticket's node has not been Ready, once its Node is deleted: after
	// 6 minutes the ticket ends, or moves. Absent while the Node exists.
	// +optional
	NodeGone *NodeGoneProgress `json:"nodeGone,omitempty"`
}

// NodeGoneProgress is the time counted since a ticket's Node was deleted. Another controller goes on
// from it, for the same Node.
type NodeGoneProgress struct {
	// nodeUID is the UID of the deleted Node. Another one means that a kubelet was alive in
	// between, and the time starts over.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	NodeUID types.UID `json:"nodeUID,omitempty"`

	// elapsedSeconds that controllers have seen pass so far.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ElapsedSeconds int64 `json:"elapsedSeconds,omitempty"`
}

// TicketVolumeStatus is one volume of a ticket. Its identity is the pair
// claim, persistentVolume: each is the empty string where it does
// not apply, since the keys of a list-map are required or have a default.
type TicketVolumeStatus struct {
	// claim is the name of the claim, if the spec names one.
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=253
	Claim string `json:"claim,omitempty"`

	// persistentVolume is the PersistentVolume that the claim is bound to, or
	// that the spec names. Empty for inline volumes and claims not bound yet.
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=253
	PersistentVolume string `json:"persistentVolume,omitempty"`

	// driver and volumeHandle name the volume that the ticket was granted. It is the ticket's while the
	// ticket is granted, regardless of the claim. Absent while the ticket is not granted, and where the
	// claim was not bound by then.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	VolumeHandle string `json:"volumeHandle,omitempty"`

	// transitions is the volume's fencing token at the grant; 0 for volumes that are not exclusive.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Transitions int64 `json:"transitions,omitempty"`
}
