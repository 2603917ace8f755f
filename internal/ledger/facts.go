// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// Access says how many nodes or pods a volume may serve at once.
type Access uint8

const (
	// AccessUnknown: no PersistentVolume of the volume has been seen. Unknown
	// is treated as exclusive to a node.
	AccessUnknown Access = iota
	// AccessMany: ReadWriteMany or ReadOnlyMany is among the modes, or there are none: Kubernetes permits
	// such a volume at many nodes.
	AccessMany
	// AccessNode: ReadWriteOnce, one node at a time.
	AccessNode
	// AccessPod: ReadWriteOncePod, one pod at a time.
	AccessPod
)

func (a Access) String() string {
	return [...]string{"unknown", "many", "node", "pod"}[a]
}

// PersistentVolume has the facts of a PersistentVolume.
type PersistentVolume struct {
	Name, UID, Version string
	Volume             VolumeID
	Access             Access
	Class              string
	Claim              ClaimKey // spec.claimRef, zero when unclaimed
	ClaimUID           string   // the claim's UID in spec.claimRef; empty when unclaimed or reserved by name
	Affinity           NodeAffinity
	Strays             string // Moorage's annotation: the driver lists it there without an attachment
	Capacity           int64  // spec.capacity, bytes
	Deleting           bool
}

// Claim has the facts of a PersistentVolumeClaim.
type Claim struct {
	Key              ClaimKey
	UID, Version     string
	PersistentVolume string // spec.volumeName
	Bound            bool   // phase Bound
	Lost             bool   // phase Lost
	Deleting         bool
	Class            string
	Access           Access // of the claim's spec; of use while it is unbound
	OwnerPod         string // UID of the pod that owns a generic ephemeral claim
	SelectedNode     NodeName
}

// StorageClass has the facts of a StorageClass.
type StorageClass struct {
	Name, Version string
	Driver        string // provisioner
	WaitForFirst  bool   // volumeBindingMode WaitForFirstConsumer
}

// Driver has the facts of a CSIDriver. A driver without the object needs attachments
// (pkg/volume/csi/csi_plugin.go).
type Driver struct {
	Name, Version  string
	AttachRequired bool
	NeedsNode      bool // pods stay away from nodes where it is not registered (spec.preventPodSchedulingIfMissing)
	SELinuxMount   bool // kubelets mount its volumes with a pod's SELinux label (spec.seLinuxMount)
}

// PodPhase is a pod's stage with respect to its volumes.
type PodPhase uint8

const (
	// PodLive: it runs, or will.
	PodLive PodPhase = iota
	// PodTerminating: it is being deleted, and a container may still run. A pod under deletion without
	// a known container status is terminating, not finished.
	PodTerminating
	// PodFinished: Succeeded, Failed, or being deleted with all containers reported terminated. It asks for
	// nothing any more; its volumes may still be mounted.
	PodFinished
)

func (p PodPhase) String() string { return [...]string{"live", "terminating", "finished"}[p] }

// Pod has the facts of a Pod.
type Pod struct {
	UID, Version    string
	Namespace, Name string
	Node            NodeName // empty until it is bound, or reserved
	Reserved        bool     // Node is reserved in this process only; see Ledger.Reserve
	Phase           PodPhase
	Created         int64 // creationTimestamp, seconds; for order among equals only
	Mirror          bool
	Priority        int32 // spec.priority
	// OptedOut says that the webhook has not stamped it and that it is not for Moorage's scheduler:
	// Cooperative mode leaves its volumes to others.
	OptedOut bool
	// Started says that a container of it has started, so that its node had its volumes.
	Started bool
	Bound   int64 // when it got its node, in seconds, by the API server's clock; 0: unknown
	Volumes []PodVolume
	// OwnCSI are the names of the CSI volumes in the pod's own spec: they are the pod's alone, are not
	// staged, and never attached.
	OwnCSI []string

	at     []VolumeID          // the volume of each of Volumes, zero if it leads nowhere; then others that it may use
	unseen bool                // no event of it was seen: Reserve was faster
	inline map[VolumeID]Access // by inline volume, the most restrictive; nil: none
}

// PodVolume is a volume of a pod that may need an attachment.
type PodVolume struct {
	Name      string
	Claim     string   // claim in the pod's namespace, or empty
	Ephemeral bool     // generic ephemeral: the claim must belong to the pod
	Inline    VolumeID // inline volume, already translated to its driver
	Access    Access   // of Inline; AccessUnknown is taken for exclusive
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

// Ticket has the facts of a VolumeTicket.
type Ticket struct {
	ID           TicketID
	UID, Version string
	Type         TicketType
	Node         NodeName // empty: none is chosen yet; Detached: at no node
	// Wherever says that Moorage chooses Node, and may choose again until the ticket is granted.
	Wherever bool
	// Parameters say how the volumes must be attached; empty: as for pods. Tickets with equal parameters
	// can share an attachment.
	Parameters string
	// OnDrain says how a cordon of its node affects the ticket.
	OnDrain    OnDrain
	Created    int64 // creationTimestamp, seconds
	TTLSeconds int64 // 0: none
	Epoch      int64
	Phase      TicketPhase
	Reason     string // of condition Granted
	Volumes    []TicketVolume
	// Granted are the ticket's granted volumes in its status: one for each of Volumes, zero for none. nil:
	// the status names none, or the ticket is not granted.
	Granted []VolumeID
	// Interruptions is how often in a row an earlier claimant in rank has taken the ticket's grant.
	Interruptions int64
	// SatisfiedSince is the start of condition Satisfied=True, in seconds since 1970, by the clock of its
	// writer; 0: not True.
	SatisfiedSince int64
	// YieldingSince is the start of condition Yielding=True, which asks a granted ticket to let go of its
	// volumes, in seconds since 1970, by the clock of its writer; 0: not True.
	YieldingSince int64
	// LetsGo says that the ticket's user has let go of the volumes after the ticket was asked to yield.
	LetsGo bool
	// NodeGone is the absence of its node in its status.
	NodeGone Outage
	// Finalizers says that the object has finalizers: its deletion is pending, and it counts, until they
	// are gone.
	Finalizers bool
	// InDoubt says that an earlier leader may still grant the ticket: see TicketInDoubt.
	InDoubt bool
	// Granting says that this process has sent a grant of the ticket, or is about to: see GrantSent.
	Granting bool

	at          []VolumeID
	interrupted time.Duration // since the ledger's epoch, see Snapshot.Interrupted
	gone        earlierOutage // see EarlierOutage
}

// OnDrain says how a cordon of its node affects a ticket.
type OnDrain uint8

// A cordon of its node: has no effect; ends the ticket; moves it.
const (
	StayOnDrain OnDrain = iota
	EndOnDrain
	MoveOnDrain
)

// Outage is the part of a deleted Node's absence that controllers have seen.
type Outage struct {
	Elapsed time.Duration
	NodeUID string // of the deleted Node
}

// TicketVolume names one volume of a ticket; exactly one field is set, except that ClaimUID accompanies
// Claim.
type TicketVolume struct {
	Claim, ClaimUID  string
	PersistentVolume string
}

// Attachment has the facts of a VolumeAttachment.
type Attachment struct {
	Name, UID, Version string
	Driver             string // spec.attacher
	Node               NodeName
	PersistentVolume   string   // spec.source.persistentVolumeName
	Inline             VolumeID // of spec.source.inlineVolumeSpec
	Attached           bool
	Deleting           bool
	DeletedAt          int64  // deletionTimestamp, seconds, by the API server's clock: for messages
	KeptBy             string // being deleted, and done by its attacher: a foreign finalizer remains
	Stamped            bool   // has a finalizer: an attacher adds its own before it calls the driver
	Ours               bool   // carries Moorage's label
	Transitions        int64  // Moorage's annotation, 0 when absent
	Note               Note   // Moorage's annotation, zero when absent
	NodeID             string // annotation csi.alpha.kubernetes.io/node-id; the value of its first attach
	Wanted             bool   // Moorage's annotation: the deletion may leave the volume in its place
	Confirmed          bool   // Moorage's annotation: Moorage has written to it since it was made
	Cooperative        bool   // Moorage's annotation: made in Cooperative mode
	AttachError        CallError
	DetachError        CallError

	own bool // see Own
}

// Own says whether the attachment has the name that follows from its volume and node, and that kubelets
// look for. Attachments with other names are foreign.
func (a *Attachment) Own() bool { return a.own }

// CallError is a VolumeError: the driver's last error.
type CallError struct {
	Code    int32 // gRPC code; 0 when none was recorded
	Message string
}

func (e CallError) IsZero() bool { return e == CallError{} }

// ResourceExhausted is gRPC code 8: the driver says that a node has no room for another volume (CSI
// specification, ControllerPublishVolume).
const ResourceExhausted = 8

// Readiness is the node's condition Ready.
type Readiness uint8

const (
	// ReadyUnknown: the condition is Unknown or absent, or the Node is gone.
	ReadyUnknown Readiness = iota
	// ReadyFalse: the kubelet says it is not ready.
	ReadyFalse
	// ReadyTrue: the kubelet says it is ready.
	ReadyTrue
)

func (r Readiness) String() string { return [...]string{"unknown", "notready", "ready"}[r] }

// NodeState has the facts of a Node.
type NodeState struct {
	Name         NodeName
	UID, Version string
	Ready        Readiness
	ReadySince   int64 // lastTransitionTime of condition Ready, seconds: only compared for equality
	OutOfService bool  // taint node.kubernetes.io/out-of-service
	Shutdown     bool  // taint node.cloudprovider.kubernetes.io/shutdown
	// Fenced are the conditions with status True that vouch that the machine writes no more, sorted by
	// type, if they are newer than its kubelet's last write of the condition Ready, by the conditions' own
	// times.
	Fenced []FencedCondition
	// CutOff are the drivers with a storage that has cut the machine off, sorted: mounts of their
	// volumes there read and write nothing.
	CutOff   []string
	Managed  bool // annotation volumes.kubernetes.io/controller-managed-attach-detach
	Draining bool // spec.unschedulable, or being deleted
	// SELinuxMount: its kubelet mounts volumes with the SELinux label of their first pod there, if the
	// driver can, by the Node's labels and version.
	SELinuxMount bool
	// Reporting says that this Node object's own kubelet has written a status: an empty InUse then
	// means that nothing is in use. A new object of an old name starts without it.
	Reporting bool
	// SystemUUID and BootID tell the machine and its boot, as the kubelet reports them
	// (status.nodeInfo); ProviderID names the machine to the cloud (spec.providerID). Each is empty if
	// unknown.
	SystemUUID, BootID, ProviderID string

	Labels   map[string]string // read only: it may be the object's own
	InUse    []VolumeID        // status.volumesInUse
	Reported []VolumeID        // status.volumesAttached
}

// FencedCondition is a condition of a Node that vouches that the machine writes no more to the volumes of
// drivers with its type in their policy.
type FencedCondition struct {
	Type  string
	Since int64 // lastTransitionTime in seconds, by its writer's clock
}

// NodeDrivers has the facts of a CSINode.
type NodeDrivers struct {
	Node    NodeName
	Version string
	Drivers []DriverOnNode
}

// DriverOnNode is one driver's entry in a CSINode.
type DriverOnNode struct {
	Name, NodeID string
	Limit        int32 // allocatable.count; NoLimit when it is absent
}

// NoLimit is the limit of a driver that states none.
const NoLimit int32 = -1

// Note is Moorage's record in the VolumeAttachment of an exclusive volume: UID, machine and boot of the Node at
// the creation, and the UID of a pod that wanted the volume there. It replaces a VolumeHold while there is
// nothing else to record.
type Note struct {
	NodeUID string
	Boot    Boot
	Pod     string
}

// MaxTransitions is the highest number of transitions. Counting ends there, since the API server refuses
// the negative number after the largest: a volume with an edited VolumeHold then has the same number at
// each node, and moorage-attacher can't tell an older VolumeAttachment by it. It still attaches only a
// volume that has left its last node.
const MaxTransitions = 1 << 62

// Hold has the facts of a VolumeHold.
type Hold struct {
	Version     string // empty: not written yet
	Node        NodeName
	NodeUID     string      // of the volume's Node, see BootID
	BootID      string      // of its boot; empty: its kubelet has not reported it
	SystemUUID  string      // of its machine; empty: its kubelet has not reported it
	Requesters  []Requester // the pods and tickets that have it there, sorted
	Next        Promise
	Transitions int64
	Grants      int64    // how often it was written before a grant
	PVs         []string // names of the PersistentVolumes, sorted
	State       HoldState
	Reason      Code   // why State is AttachFailed, DetachPending or Unknown
	Message     string // the same in words
	Stays       bool   // it may be at Node without an attachment: left there
	Waiting     []Requester
	Force       *Force  // nil: no rule of force is timed, or has been without effect
	Fences      []Fence // sorted by node, at most one for each
}

// Promise names the claimant that gets a volume as soon as its holder lets go. Zero: none.
type Promise struct {
	Node NodeName
	To   Requester
}

// Requester is a claimant of a volume: a pod, or a VolumeTicket.
type Requester struct {
	Ticket               bool // a VolumeTicket; otherwise a Pod
	Namespace, Name, UID string
}

// IsZero says whether r names no claimant.
func (r Requester) IsZero() bool { return r == Requester{} }

func (r Requester) String() string {
	kind := "pod "
	if r.Ticket {
		kind = "ticket "
	}
	return kind + r.Namespace + "/" + r.Name
}

// HoldState is a VolumeHold's state in one word. A brief state is not written: a normal attach or detach
// changes Held or Free at its end.
type HoldState string

// The states of a hold.
const (
	HoldFree          HoldState = "Free"          // at no node
	HoldHeld          HoldState = "Held"          // granted to a node
	HoldAttachFailed  HoldState = "AttachFailed"  // granted to a node, but the driver refuses to attach it there
	HoldDetachPending HoldState = "DetachPending" // should leave its node and can't, see Reason
	HoldUnknown       HoldState = "Unknown"       // at more than one node, or where it should not be
)

// Code names a reason; docs/reasons.md lists them all.
type Code string

// Force is the progress of a forced detach. Elapsed was seen by one process and survives it here, so that
// no two clocks are compared.
type Force struct {
	Rule    string
	Node    NodeName // the node to force
	Elapsed time.Duration
	// NodeUID, Since and Renewed identify the outage: the UID of the Node, also of a deleted one; its
	// ReadySince, 0 when it is gone; and the renewal of its Lease, 0 if it was not read. A difference shows
	// that the node was there, or its kubelet alive, in between.
	NodeUID        string
	Since, Renewed int64
}

// Fence says that a volume is taken from a node by force, and is written before volumesAttached is. While
// the attachment exists, that node's kubelet may have forgotten the volume, as a restarting kubelet does if
// volumesAttached omits it. After its end, the kubelet's last report does not count during the outage.
type Fence struct {
	Node       NodeName
	NodeUID    string // of the Node object; empty if it was not seen
	BootID     string // of its boot; empty: its kubelet has not reported it
	SystemUUID string // of its machine; empty: its kubelet has not reported it
	Attachment string // UID of the VolumeAttachment; empty for a volume that has none
	// Rule is the rule of force. Empty: it has ended, and the volume may be mounted in that boot, attached
	// or not.
	Rule string
	// InUse says that the kubelet's last list did not show the volume as unused: it named the volume, or
	// there was none.
	InUse bool
	// Reported says that a volume without attachments, which the hold gives to another node or to none, was
	// in volumesAttached here, or was about to be (VolumeOnNode.ReportSent), and that its Node is gone since
	// or the volume is unknown there.
	Reported bool
	// Since and Renewed identify the outage, as in Force; 0 without a rule.
	Since, Renewed int64
}

// Fence returns a hold's fence of a node.
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

// PolicyFields is a set of an AttachPolicy's fields.
type PolicyFields uint16

// Fields with a value that equals their absence.
const (
	FieldDetachDelay PolicyFields = 1 << iota
	FieldLiveMigration
	FieldUnpublishFences
	FieldFencedCondition
	FieldOperations // attachFor or detachFor
)

// Policy has the facts of an AttachPolicy. Zero values mean Kubernetes' defaults.
type Policy struct {
	Name, Version    string
	Created          int64  // creationTimestamp, seconds; the oldest policy counts
	Driver, Class    string // Class empty: all of the driver
	MaxSlots         *int32
	Headroom         int32
	DetachDelay      time.Duration
	AfterPodGone     *time.Duration // nil: 6 minutes; negative: never
	AfterUnreachable *time.Duration // nil and negative: never
	LiveMigration    bool           // the driver may attach to two nodes
	UnpublishFences  bool           // unpublish takes the machine's access away
	FencedCondition  string         // the type of a Node's condition that is proof; empty: none
	NetworkFence     NetworkFence   // zero: none
	Workers          int
	AttachFor        Operations   // only while the volume is attached somewhere
	DetachFor        Operations   // only while it is attached nowhere
	Says             PolicyFields // the set fields, also with value zero
}

// NetworkFence is how the storage of a policy's driver cuts nodes off.
type NetworkFence struct {
	Class string         // the NetworkFenceClass; empty: no fence counts
	After *time.Duration // since the node became unreachable; nil and negative: none is made
}
