// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// Access says how many nodes or pods a volume may serve.
type Access uint8

const (
	// AccessUnknown, without a seen PersistentVolume, is treated as exclusive to a node.
	AccessUnknown Access = iota
	// AccessMany: ReadWriteMany or ReadOnlyMany, or no modes: Kubernetes permits many nodes.
	AccessMany
	// AccessNode: ReadWriteOnce.
	AccessNode
	// AccessPod: ReadWriteOncePod.
	AccessPod
)

func (a Access) String() string {
	return [...]string{"unknown", "many", "node", "pod"}[a]
}

// PersistentVolume has its facts.
type PersistentVolume struct {
	Name, UID, Version string
	Volume             VolumeID
	Access             Access
	Class              string
	Claim              ClaimKey // zero: unclaimed
	ClaimUID           string   // empty: unclaimed, or reserved by name
	Affinity           NodeAffinity
	Strays             string // annotation: listed there without an attachment
	Capacity           int64  // bytes
	Deleting           bool
}

// Claim has a PersistentVolumeClaim's facts.
type Claim struct {
	Key              ClaimKey
	UID, Version     string
	PersistentVolume string // spec.volumeName
	Bound            bool   // phase Bound
	Lost             bool   // phase Lost
	Deleting         bool
	Class            string
	Access           Access // for an unbound claim
	OwnerPod         string // UID, for a generic ephemeral claim
	SelectedNode     NodeName
}

// StorageClass has its facts.
type StorageClass struct {
	Name, Version string
	Driver        string // provisioner
	WaitForFirst  bool   // WaitForFirstConsumer
}

// Driver has a CSIDriver's facts. Without the object a driver needs attachments
// (pkg/volume/csi/csi_plugin.go).
type Driver struct {
	Name, Version  string
	AttachRequired bool
	NeedsNode      bool // spec.preventPodSchedulingIfMissing
	SELinuxMount   bool // spec.seLinuxMount
}

// PodPhase is a pod's stage for its volumes.
type PodPhase uint8

const (
	// PodLive: it runs, or will.
	PodLive PodPhase = iota
	// PodTerminating: it is being deleted, and a container may run or has no known status.
	PodTerminating
	// PodFinished: Succeeded, Failed, or being deleted with all containers terminated. Its volumes may
	// still be mounted.
	PodFinished
)

func (p PodPhase) String() string { return [...]string{"live", "terminating", "finished"}[p] }

// Pod has its facts.
type Pod struct {
	UID, Version    string
	Namespace, Name string
	Node            NodeName // empty until bound or reserved
	Reserved        bool     // only in this process: see Ledger.Reserve
	Phase           PodPhase
	Created         int64 // seconds; only for order among equals
	Mirror          bool
	Priority        int32 // spec.priority
	// OptedOut: neither stamped by the webhook nor for Moorage's scheduler. Cooperative mode leaves its
	// volumes to others.
	OptedOut bool
	// Started: a container started, so that its volumes were there.
	Started bool
	Bound   int64 // when, in seconds, by the API server's clock; 0: unknown
	Volumes []PodVolume
	// OwnCSI are CSI volumes in the pod's spec: its alone, unstaged, never attached.
	OwnCSI []string

	at     []VolumeID          // by Volumes or zero, then other possible volumes
	unseen bool                // Reserve came first
	inline map[VolumeID]Access // most restrictive access by inline volume, or nil
}

// PodVolume may need an attachment.
type PodVolume struct {
	Name      string
	Claim     string   // in the pod's namespace, or empty
	Ephemeral bool     // the claim must be the pod's
	Inline    VolumeID // translated to its driver
	Access    Access   // of Inline; unknown: exclusive
	ReadOnly  bool
	SELinux   SELinux // the label of the mount
}

// TicketPhase is a ticket's state.
type TicketPhase uint8

const (
	// TicketPending: it waits.
	TicketPending TicketPhase = iota
	// TicketGranted: condition Granted is True.
	TicketGranted
)

func (p TicketPhase) String() string { return [...]string{"pending", "granted"}[p] }

// Ticket has a VolumeTicket's facts.
type Ticket struct {
	ID           TicketID
	UID, Version string
	Type         TicketType
	Node         NodeName // empty: not chosen; Detached: no node
	// Wherever lets Moorage choose Node, until the ticket is granted.
	Wherever bool
	// Parameters say how to attach; empty: as for pods. Only equal parameters share an attachment.
	Parameters string
	// OnDrain is the effect of a cordon of its node.
	OnDrain    OnDrain
	Created    int64 // seconds
	TTLSeconds int64 // 0: none
	Epoch      int64
	Phase      TicketPhase
	Reason     string // of condition Granted
	Volumes    []TicketVolume
	// Granted are its status' granted volumes, by Volumes, zero for none. nil: none named, or not granted.
	Granted []VolumeID
	// Interruptions counts grants lost in a row to claimants of earlier rank.
	Interruptions int64
	// SatisfiedSince is the start of Satisfied=True, in its writer's seconds since 1970; 0: not True.
	SatisfiedSince int64
	// YieldingSince is the start of Yielding=True, the request to let go, in its writer's seconds since
	// 1970; 0: not True.
	YieldingSince int64
	// LetsGo: its user has let go after the request to yield.
	LetsGo bool
	// NodeGone is its node's absence, by status.
	NodeGone Outage
	// Finalizers: until they are gone, a deletion is pending, and the ticket counts.
	Finalizers bool
	// InDoubt: see TicketInDoubt.
	InDoubt bool
	// Granting: see GrantSent.
	Granting bool

	at          []VolumeID
	interrupted time.Duration // see Snapshot.Interrupted
	gone        earlierOutage // see EarlierOutage
}

// OnDrain is a cordon's effect on a ticket.
type OnDrain uint8

// A cordon has no effect, ends the ticket, or moves it.
const (
	StayOnDrain OnDrain = iota
	EndOnDrain
	MoveOnDrain
)

// Outage is a deleted Node's absence as far as controllers saw it.
type Outage struct {
	Elapsed time.Duration
	NodeUID string // of the deleted Node
}

// TicketVolume has exactly one field set, except that ClaimUID accompanies Claim.
type TicketVolume struct {
	Claim, ClaimUID  string
	PersistentVolume string
}

// Attachment has a VolumeAttachment's facts.
type Attachment struct {
	Name, UID, Version string
	Driver             string // spec.attacher
	Node               NodeName
	PersistentVolume   string   // spec.source.persistentVolumeName
	Inline             VolumeID // of spec.source.inlineVolumeSpec
	Attached           bool
	Deleting           bool
	DeletedAt          int64  // seconds by the API server's clock, for messages
	KeptBy             string // foreign finalizer of a deletion that its attacher has done
	Stamped            bool   // has a finalizer, added by an attacher before its driver call
	Ours               bool   // Moorage's label
	Transitions        int64  // annotation, 0: absent
	Note               Note   // annotation, or zero
	NodeID             string // annotation csi.alpha.kubernetes.io/node-id of its first attach
	Wanted             bool   // annotation: the volume may stay there after deletion
	Confirmed          bool   // annotation: Moorage has written to it
	Cooperative        bool   // annotation: made in Cooperative mode
	AttachError        CallError
	DetachError        CallError

	own bool // see Own
}

// Own says whether the name follows from volume and node, as kubelets expect. Others are foreign.
func (a *Attachment) Own() bool { return a.own }

// CallError is the driver's last error.
type CallError struct {
	Code    int32 // gRPC; 0: unrecorded
	Message string
}

func (e CallError) IsZero() bool { return e == CallError{} }

// ResourceExhausted is gRPC code 8: a node has no room for another volume (CSI specification,
// ControllerPublishVolume).
const ResourceExhausted = 8

// Readiness is the node's condition Ready.
type Readiness uint8

const (
	// ReadyUnknown: Unknown or absent, or the Node is gone.
	ReadyUnknown Readiness = iota
	// ReadyFalse: the kubelet says it is not ready.
	ReadyFalse
	// ReadyTrue: the kubelet says it is ready.
	ReadyTrue
)

func (r Readiness) String() string { return [...]string{"unknown", "notready", "ready"}[r] }

// NodeState has a Node's facts.
type NodeState struct {
	Name         NodeName
	UID, Version string
	Ready        Readiness
	ReadySince   int64 // seconds: compared for equality only
	OutOfService bool  // taint node.kubernetes.io/out-of-service
	Shutdown     bool  // taint node.cloudprovider.kubernetes.io/shutdown
	// Fenced are, by type, True conditions that the machine writes no more, newer than the kubelet's last
	// write of Ready.
	Fenced []FencedCondition
	// CutOff are, sorted, drivers whose storage has cut the machine off: their mounts are dead.
	CutOff   []string
	Managed  bool // annotation volumes.kubernetes.io/controller-managed-attach-detach
	Draining bool // unschedulable, or being deleted
	// SELinuxMount: its kubelet mounts with the first pod's SELinux label, if the driver can.
	SELinuxMount bool
	// Reporting: this object's kubelet has written a status, so that an empty InUse means no use. A new
	// object starts without it.
	Reporting bool
	// SystemUUID and BootID are the kubelet's machine and boot, ProviderID the cloud's machine; empty:
	// unknown.
	SystemUUID, BootID, ProviderID string

	Labels   map[string]string // read only: perhaps the object's
	InUse    []VolumeID        // status.volumesInUse
	Reported []VolumeID        // status.volumesAttached
}

// FencedCondition vouches that a machine writes no more to volumes whose policy has its type.
type FencedCondition struct {
	Type  string
	Since int64 // lastTransitionTime in seconds
}

// NodeDrivers has a CSINode's facts.
type NodeDrivers struct {
	Node    NodeName
	Version string
	Drivers []DriverOnNode
}

// DriverOnNode is a driver's entry in a CSINode.
type DriverOnNode struct {
	Name, NodeID string
	Limit        int32 // NoLimit: absent
}

// NoLimit stands for an unstated limit.
const NoLimit int32 = -1

// Note is Moorage's record in an exclusive volume's VolumeAttachment: the Node's UID, machine and boot at
// the creation, and a wanting pod's UID. It replaces a VolumeHold without other content.
type Note struct {
	NodeUID string
	Boot    Boot
	Pod     string
}

// MaxTransitions ends the count: the API server refuses the negative number beyond the largest. An edited
// VolumeHold then gives the same number everywhere, and moorage-attacher can't tell an older
// VolumeAttachment. It still attaches only a volume that has left its last node.
const MaxTransitions = 1 << 62

// Hold has a VolumeHold's facts.
type Hold struct {
	Version     string // empty: unwritten
	Node        NodeName
	NodeUID     string      // of the volume's Node, see BootID
	BootID      string      // empty: unreported
	SystemUUID  string      // empty: unreported
	Requesters  []Requester // its pods and tickets there, sorted
	Next        Promise
	Transitions int64
	Grants      int64    // number of writes before a grant
	PVs         []string // names, sorted
	State       HoldState
	Reason      Code   // of AttachFailed, DetachPending or Unknown
	Message     string // the same in words
	Stays       bool   // left at Node, perhaps without an attachment
	Waiting     []Requester
	Force       *Force  // nil: no timed or ineffective rule of force
	Fences      []Fence // by node, at most one each
}

// Promise is the claimant that gets a volume next; zero: none.
type Promise struct {
	Node NodeName
	To   Requester
}

// Requester is a claimant: a pod or a VolumeTicket.
type Requester struct {
	Ticket               bool // a VolumeTicket; otherwise a Pod
	Namespace, Name, UID string
}

// IsZero: no claimant.
func (r Requester) IsZero() bool { return r == Requester{} }

func (r Requester) String() string {
	kind := "pod "
	if r.Ticket {
		kind = "ticket "
	}
	return kind + r.Namespace + "/" + r.Name
}

// HoldState is a VolumeHold's state. Brief states are not written.
type HoldState string

// The states of a hold.
const (
	HoldFree          HoldState = "Free"          // at no node
	HoldHeld          HoldState = "Held"          // granted to a node
	HoldAttachFailed  HoldState = "AttachFailed"  // granted, but the driver refuses
	HoldDetachPending HoldState = "DetachPending" // should leave and can't, see Reason
	HoldUnknown       HoldState = "Unknown"       // at several nodes, or misplaced
)

// Code is a reason in docs/reasons.md.
type Code string

// Force is a forced detach's progress. Elapsed outlives its process, so that no clocks are compared.
type Force struct {
	Rule    string
	Node    NodeName // the node to force
	Elapsed time.Duration
	// NodeUID, Since and Renewed identify the outage: the UID, even of a deleted Node; its ReadySince, 0:
	// gone; its Lease's renewal, 0: unread. A difference is a sign of life.
	NodeUID        string
	Since, Renewed int64
}

// Fence says that a volume is taken by force, before volumesAttached omits it. While the attachment exists,
// the kubelet may have forgotten the volume: a restarting kubelet does if volumesAttached omits it. After
// its end the kubelet's last report does not count in this outage.
type Fence struct {
	Node       NodeName
	NodeUID    string // empty: unseen
	BootID     string // empty: unreported
	SystemUUID string // empty: unreported
	Attachment string // empty: none
	// Rule is empty at its end: the volume may be mounted in that boot, attached or not.
	Rule string
	// InUse: the kubelet's last list named the volume, or there was none.
	InUse bool
	// Reported: a volume without attachments, held elsewhere or nowhere, was or would be
	// (VolumeOnNode.ReportSent) in volumesAttached here, and its Node is gone or it is unknown there.
	Reported bool
	// Since and Renewed identify the outage, as in Force; 0: no rule.
	Since, Renewed int64
}

// Fence returns a node's fence.
func (h *Hold) Fence(n NodeName) (Fence, bool) {
	if h != nil {
		for i := range h.Fences {
			if h.Fences[i].Node == n {
				return h.Fences[i], true
			}
		}
	}
	return Fence{}, false
}

// PolicyFields is a set of AttachPolicy fields.
type PolicyFields uint16

// Fields whose value can equal their absence.
const (
	FieldDetachDelay PolicyFields = 1 << iota
	FieldLiveMigration
	FieldUnpublishFences
	FieldFencedCondition
	FieldOperations // attachFor or detachFor
)

// Policy has an AttachPolicy's facts; zero values are Kubernetes' defaults.
type Policy struct {
	Name, Version    string
	Created          int64  // seconds; the oldest policy counts
	Driver, Class    string // no Class: the whole driver
	MaxSlots         *int32
	Headroom         int32
	DetachDelay      time.Duration
	AfterPodGone     *time.Duration // nil: 6 minutes; negative: never
	AfterUnreachable *time.Duration // nil or negative: never
	LiveMigration    bool           // may attach to two nodes
	UnpublishFences  bool           // unpublish ends the machine's access
	FencedCondition  string         // a Node's condition as proof, or empty
	NetworkFence     NetworkFence   // zero: none
	Workers          int
	AttachFor        Operations   // only while attached
	DetachFor        Operations   // only while detached
	Says             PolicyFields // set, even to zero
}

// NetworkFence is how a driver's storage cuts nodes off.
type NetworkFence struct {
	Class string         // NetworkFenceClass; empty: no fence counts
	After *time.Duration // After counts from unreachable; nil or negative: no fence.
}
