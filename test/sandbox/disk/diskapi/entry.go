// SPDX-License-Identifier: Apache-2.0

package diskapi

import (
	"fmt"
	"slices"
	"time"
)

// Call names an RPC of the CSI specification, or something done to the service
// through its admin API.
type Call string

// The CSI calls that are logged. Probe and the capability calls are not: they
// say nothing about a volume.
const (
	CreateVolume               Call = "CreateVolume"
	DeleteVolume               Call = "DeleteVolume"
	ControllerPublish          Call = "ControllerPublishVolume"
	ControllerUnpublish        Call = "ControllerUnpublishVolume"
	ValidateVolumeCapabilities Call = "ValidateVolumeCapabilities"
	ListVolumes                Call = "ListVolumes"
	ControllerGetVolume        Call = "ControllerGetVolume"
	NodeStage                  Call = "NodeStageVolume"
	NodeUnstage                Call = "NodeUnstageVolume"
	NodePublish                Call = "NodePublishVolume"
	NodeUnpublish              Call = "NodeUnpublishVolume"
	NodeGetInfo                Call = "NodeGetInfo"
	// FenceNetwork has the storage cut off the clients at some addresses, UnfenceNetwork
	// has it let them in again: csi-addons' FenceController.
	FenceNetwork   Call = "FenceClusterNetwork"
	UnfenceNetwork Call = "UnfenceClusterNetwork"
)

// Actions on the service from outside the CSI; always in phase Noted.
const (
	ServiceStarted Call = "ServiceStarted"
	SetSlots       Call = "SetSlots"
	// FenceNode declares a node dead; it is not the storage that fences.
	FenceNode   Call = "FenceNode"
	UnfenceNode Call = "UnfenceNode"
	SetFault    Call = "SetFault"
	ClearFault  Call = "ClearFault"
	SetLatency  Call = "SetLatency"
	Finish      Call = "Finish"
	// Held: a node has done its part, and a fault holds its answer.
	Held Call = "Held"
)

// MountCalls lists the kubelet's calls to mount a volume and to take it down again, in their order.
func MountCalls() []Call { return []Call{NodeStage, NodePublish, NodeUnpublish, NodeUnstage} }

// CSICalls lists every call that can carry a fault or a latency.
func CSICalls() []Call {
	return []Call{
		CreateVolume, DeleteVolume, ControllerPublish, ControllerUnpublish,
		ValidateVolumeCapabilities, ListVolumes, ControllerGetVolume,
		NodeStage, NodeUnstage, NodePublish, NodeUnpublish, NodeGetInfo, FenceNetwork, UnfenceNetwork,
		CreateSnapshot, DeleteSnapshot, ListSnapshots, CreateGroupSnapshot, DeleteGroupSnapshot, GetGroupSnapshot,
		ControllerExpand, NodeExpand, ControllerGetVolumeHealth, ControllerListVolumeHealth,
	}
}

// Validate returns an error if a fault or latency can't be set for the call.
func (c Call) Validate() error {
	if !slices.Contains(CSICalls(), c) {
		return fmt.Errorf("%q is no call: use one of %v", c, CSICalls())
	}
	return nil
}

// Phase says which moment of a call an entry records.
type Phase string

// The phases; see the package documentation.
const (
	Arrived  Phase = "arrived"
	Applied  Phase = "applied"
	Returned Phase = "returned"
	Noted    Phase = "noted"
)

// Outcome says how a call ended. Only entries in phase Returned carry one.
type Outcome string

// The outcomes.
const (
	// OK: the caller was answered with success.
	OK Outcome = "ok"
	// Refused: the cloud looked at its state and said no; nothing changed.
	Refused Outcome = "refused"
	// Failed: a fault made the answer an error. Whether something changed
	// shows in the presence of an applied entry.
	Failed Outcome = "failed"
	// Abandoned: the caller's deadline passed or it cancelled. The operation
	// may still be applied later.
	Abandoned Outcome = "abandoned"
	// Lost: the service was killed before it could answer.
	Lost Outcome = "lost"
)

// Entry is one line of the log.
type Entry struct {
	// Seq rises by one with each entry, across restarts. The first is 1.
	Seq uint64 `json:"seq"`
	// Time is the service's wall clock. All entries share this one clock.
	Time time.Time `json:"time"`
	// ID joins the entries of a call: the Seq of its arrival. For a noted entry it is its own Seq.
	ID    uint64 `json:"id"`
	Phase Phase  `json:"phase"`
	Call  Call   `json:"call"`
	// Volume is a volume handle; empty where a call has none (yet).
	Volume string `json:"volume,omitempty"`
	// Node is a node ID as NodeGetInfo states it, not the node's name.
	Node    string  `json:"node,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	// Code is the gRPC code's name, such as "FailedPrecondition".
	Code string `json:"code,omitempty"`
	// DurationMs is the time since the arrival, in milliseconds.
	DurationMs float64 `json:"durationMs,omitempty"`
	// Detail is for people: the error message, or the idempotent part.
	Detail string `json:"detail,omitempty"`
	// FaultID names the fault that hit this call.
	FaultID string `json:"faultID,omitempty"`
	Args
}

// Args are what a call carries besides its volume and node. Each call uses the
// few that concern it.
type Args struct {
	// Name is the name a disk or a snapshot is created under, or a node's Kubernetes name.
	Name string `json:"name,omitempty"`
	// SizeBytes is the capacity asked for or given.
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// AccessMode is the CSI access mode's name, such as "SINGLE_NODE_WRITER".
	AccessMode string `json:"accessMode,omitempty"`
	ReadOnly   bool   `json:"readOnly,omitempty"`
	// Context is the publish context: answered by ControllerPublish, and
	// handed to NodeStage and NodePublish.
	Context map[string]string `json:"context,omitempty"`
	// Path is the staging path of NodeStage and NodeUnstage, the target path
	// of NodePublish and NodeUnpublish.
	Path string `json:"path,omitempty"`
	// Slots is the number of volumes that a node can attach.
	Slots int `json:"slots,omitempty"`
	// Zone is a node's or a disk's; empty: none. Zones are those that a new disk may be in, the preferred
	// first; none: a node of any zone can have it.
	Zone  string   `json:"zone,omitempty"`
	Zones []string `json:"zones,omitempty"`
	// Address is where a node's client reaches the storage from.
	Address string `json:"address,omitempty"`
	// CIDRs are for the storage to cut off, or to let in.
	CIDRs []string `json:"cidrs,omitempty"`
	// Again marks a node call that found its work already done.
	Again bool `json:"again,omitempty"`
	// NotStaged marks a NodePublish of a volume that the node has not staged.
	NotStaged bool `json:"notStaged,omitempty"`
	// Beside marks a NodePublish of a volume that the node has published at another path.
	Beside bool `json:"beside,omitempty"`
	// Fault is what SetFault set.
	Fault *Fault `json:"fault,omitempty"`
	// LatencyMs is what SetLatency set for LatencyOf, in milliseconds.
	LatencyMs int64 `json:"latencyMs,omitempty"`
	LatencyOf Call  `json:"latencyOf,omitempty"`
	// Health is what SetHealth set.
	Health []Health `json:"health,omitempty"`
	// Write is how far a writer has come. A NodeUnpublish or NodeUnstage that has one ends
	// the writer, and flushes.
	Write *WriteMark `json:"write,omitempty"`
	Operated
}

// Done reports whether the entry is the successful end of its call.
func (e Entry) Done() bool { return e.Phase == Returned && e.Outcome == OK }

// Exclusive reports whether a CSI access mode (by name) allows one node only.
// An empty mode counts as exclusive: not-known-shared means exclusive.
func Exclusive(mode string) bool {
	switch mode {
	case "MULTI_NODE_READER_ONLY", "MULTI_NODE_SINGLE_WRITER", "MULTI_NODE_MULTI_WRITER":
		return false
	}
	return true
}
