// SPDX-License-Identifier: Apache-2.0

package diskapi

// Attachment is a disk at a node, as the cloud has it.
type Attachment struct {
	Volume     string            `json:"volume"`
	Node       string            `json:"node"`
	AccessMode string            `json:"accessMode"`
	ReadOnly   bool              `json:"readOnly,omitempty"`
	Context    map[string]string `json:"context,omitempty"`
}

// Disk is a disk and where it is.
type Disk struct {
	Volume    string `json:"volume"`
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
	// Zone is the only zone that has nodes for it; empty: a node of any zone can have it.
	Zone string `json:"zone,omitempty"`
	// Attached lists the attachments by node.
	Attached []Attachment `json:"attached,omitempty"`
	// Health has the driver's reported faults; none for a healthy volume.
	Health []Health `json:"health,omitempty"`
	// Staged lists the nodes that may have it staged, as the judge knows it.
	Staged []string `json:"staged,omitempty"`
}

// Node is an instance that disks can be attached to.
type Node struct {
	// ID is the instance ID, the CSI node ID.
	ID string `json:"id"`
	// Name is the Kubernetes node's name, for people.
	Name string `json:"name,omitempty"`
	// Slots is how many disks it can have attached.
	Slots int `json:"slots"`
	// Zone is where it is; empty without zones.
	Zone string `json:"zone,omitempty"`
	// Address is where its client reaches the storage from.
	Address string `json:"address,omitempty"`
	// CutOff says that the storage refuses its client.
	CutOff bool `json:"cutOff,omitempty"`
	// Fenced says that it was declared dead and has not come back.
	Fenced bool `json:"fenced,omitempty"`
	// Boot counts its fences: mounts from before the last are gone.
	Boot int `json:"boot"`
}

// NodeChange is the body of a change to a node; nil fields stay.
type NodeChange struct {
	Slots  *int  `json:"slots,omitempty"`
	Fenced *bool `json:"fenced,omitempty"`
}

// Latency is the time an operation takes in the cloud, in milliseconds.
type Latency struct {
	Call      Call  `json:"call"`
	LatencyMs int64 `json:"latencyMs"`
}

// CallStats counts the calls of a kind since the log began.
type CallStats struct {
	Arrived  int             `json:"arrived"`
	Outcomes map[Outcome]int `json:"outcomes"`
	// MaxMs and TotalMs sum up the durations of returned calls, in milliseconds.
	MaxMs   float64 `json:"maxMs"`
	TotalMs float64 `json:"totalMs"`
}

// Stats sums up the service.
type Stats struct {
	// Seq is the last entry that is counted.
	Seq         uint64              `json:"seq"`
	Calls       map[Call]*CallStats `json:"calls"`
	Disks       int                 `json:"disks"`
	Snapshots   int                 `json:"snapshots,omitempty"`
	Attachments int                 `json:"attachments"`
	// InFlight counts operations that the cloud is carrying out right now.
	InFlight   int `json:"inFlight"`
	Violations int `json:"violations"`
}

// LogPage is a piece of the log.
type LogPage struct {
	Entries []Entry `json:"entries"`
	// Last is the sequence number up to which the log was searched. Ask on
	// from here.
	Last uint64 `json:"last"`
}

// NodeID is the instance ID of the node with this Kubernetes name. The two differ, as in clouds, so
// that a mix-up fails.
func NodeID(nodeName string) string { return "i-" + nodeName }
