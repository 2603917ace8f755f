// SPDX-License-Identifier: Apache-2.0

package diskapi

type Attachment struct {
	Volume     string            `json:"volume"`
	Node       string            `json:"node"`
	AccessMode string            `json:"accessMode"`
	ReadOnly   bool              `json:"readOnly,omitempty"`
	Context    map[string]string `json:"context,omitempty"`
}

type Disk struct {
	Volume    string `json:"volume"`
	Name      string `json:"name"`
	SizeBytes int64  `json:"sizeBytes"`
	// Zone is the only zone with nodes for the disk; empty: any zone.
	Zone     string       `json:"zone,omitempty"`
	Attached []Attachment `json:"attached,omitempty"`
	Health   []Health     `json:"health,omitempty"`
	// Staged lists the nodes that may have it staged, as the judge knows it.
	Staged []string `json:"staged,omitempty"`
}

type Node struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Slots   int    `json:"slots"`
	Zone    string `json:"zone,omitempty"`
	Address string `json:"address,omitempty"`
	CutOff  bool   `json:"cutOff,omitempty"`
	// Fenced says that it was declared dead and has not come back.
	Fenced bool `json:"fenced,omitempty"`
	// Boot counts its fences: mounts from before the last are gone.
	Boot int `json:"boot"`
}

type NodeChange struct {
	Slots  *int  `json:"slots,omitempty"`
	Fenced *bool `json:"fenced,omitempty"`
}

type Latency struct {
	Call      Call  `json:"call"`
	LatencyMs int64 `json:"latencyMs"`
}

type CallStats struct {
	Arrived  int             `json:"arrived"`
	Outcomes map[Outcome]int `json:"outcomes"`
	MaxMs    float64         `json:"maxMs"`
	TotalMs  float64         `json:"totalMs"`
}

type Stats struct {
	Seq         uint64              `json:"seq"`
	Calls       map[Call]*CallStats `json:"calls"`
	Disks       int                 `json:"disks"`
	Snapshots   int                 `json:"snapshots,omitempty"`
	Attachments int                 `json:"attachments"`
	InFlight    int                 `json:"inFlight"`
	Violations  int                 `json:"violations"`
}

type LogPage struct {
	Entries []Entry `json:"entries"`
	// Last is the last searched sequence number. Ask on from here.
	Last uint64 `json:"last"`
}

// NodeID is a node's instance ID. It differs from the name, as in clouds, so that a mix-up fails.
func NodeID(nodeName string) string { return "i-" + nodeName }
