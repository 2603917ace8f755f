// SPDX-License-Identifier: Apache-2.0

package diskapi

import (
	"fmt"
	"slices"
	"time"
)

type Call string

// Probe and the capability calls are not logged.
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
	// FenceNetwork and UnfenceNetwork are csi-addons' FenceController.
	FenceNetwork   Call = "FenceClusterNetwork"
	UnfenceNetwork Call = "UnfenceClusterNetwork"
)

// Actions on the service from outside the CSI; always in phase Noted.
const (
	ServiceStarted Call = "ServiceStarted"
	SetSlots       Call = "SetSlots"
	FenceNode      Call = "FenceNode"
	UnfenceNode    Call = "UnfenceNode"
	SetFault       Call = "SetFault"
	ClearFault     Call = "ClearFault"
	SetLatency     Call = "SetLatency"
	Finish         Call = "Finish"
	Held           Call = "Held"
)

func MountCalls() []Call { return []Call{NodeStage, NodePublish, NodeUnpublish, NodeUnstage} }

func CSICalls() []Call {
	return []Call{
		CreateVolume, DeleteVolume, ControllerPublish, ControllerUnpublish,
		ValidateVolumeCapabilities, ListVolumes, ControllerGetVolume,
		NodeStage, NodeUnstage, NodePublish, NodeUnpublish, NodeGetInfo, FenceNetwork, UnfenceNetwork,
		CreateSnapshot, DeleteSnapshot, ListSnapshots, CreateGroupSnapshot, DeleteGroupSnapshot, GetGroupSnapshot,
		ControllerExpand, NodeExpand, ControllerGetVolumeHealth, ControllerListVolumeHealth,
	}
}

func (c Call) Validate() error {
	if !slices.Contains(CSICalls(), c) {
		return fmt.Errorf("%q is no call: use one of %v", c, CSICalls())
	}
	return nil
}

type Phase string

const (
	Arrived  Phase = "arrived"
	Applied  Phase = "applied"
	Returned Phase = "returned"
	Noted    Phase = "noted"
)

// Outcome says how a call ended, in phase Returned only.
type Outcome string

const (
	OK Outcome = "ok"
	// Refused: the cloud said no, and nothing changed.
	Refused Outcome = "refused"
	// Failed: a fault made the answer an error. An applied entry shows a change.
	Failed Outcome = "failed"
	// Abandoned: the caller's deadline passed or it cancelled. The operation
	// may still be applied later.
	Abandoned Outcome = "abandoned"
	Lost      Outcome = "lost"
)

type Entry struct {
	// Seq rises by one with each entry from 1, across restarts.
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	// ID joins a call's entries: the Seq of its arrival. A noted entry has its own Seq.
	ID     uint64 `json:"id"`
	Phase  Phase  `json:"phase"`
	Call   Call   `json:"call"`
	Volume string `json:"volume,omitempty"`
	// Node is a node ID as NodeGetInfo states it, not the node's name.
	Node    string  `json:"node,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	Code    string  `json:"code,omitempty"`
	// DurationMs is the time since the arrival, in milliseconds.
	DurationMs float64 `json:"durationMs,omitempty"`
	// Detail is for people: the error message, or the idempotent part.
	Detail  string `json:"detail,omitempty"`
	FaultID string `json:"faultID,omitempty"`
	Args
}

type Args struct {
	Name       string            `json:"name,omitempty"`
	SizeBytes  int64             `json:"sizeBytes,omitempty"`
	AccessMode string            `json:"accessMode,omitempty"`
	ReadOnly   bool              `json:"readOnly,omitempty"`
	Context    map[string]string `json:"context,omitempty"`
	Path       string            `json:"path,omitempty"`
	Slots      int               `json:"slots,omitempty"`
	// Zone is empty without a zone. Zones are for a new disk, the preferred first; none: nodes of any zone.
	Zone    string   `json:"zone,omitempty"`
	Zones   []string `json:"zones,omitempty"`
	Address string   `json:"address,omitempty"`
	CIDRs   []string `json:"cidrs,omitempty"`
	// Again marks a node call that found its work already done.
	Again     bool     `json:"again,omitempty"`
	NotStaged bool     `json:"notStaged,omitempty"`
	Beside    bool     `json:"beside,omitempty"`
	Fault     *Fault   `json:"fault,omitempty"`
	LatencyMs int64    `json:"latencyMs,omitempty"`
	LatencyOf Call     `json:"latencyOf,omitempty"`
	Health    []Health `json:"health,omitempty"`
	// Write is a writer's progress. In a NodeUnpublish or NodeUnstage it ends the writer, and flushes.
	Write *WriteMark `json:"write,omitempty"`
	Operated
}

func (e Entry) Done() bool { return e.Phase == Returned && e.Outcome == OK }

// Exclusive reports whether a CSI access mode allows one node only. An empty mode counts as exclusive.
func Exclusive(mode string) bool {
	switch mode {
	case "MULTI_NODE_READER_ONLY", "MULTI_NODE_SINGLE_WRITER", "MULTI_NODE_MULTI_WRITER":
		return false
	}
	return true
}
