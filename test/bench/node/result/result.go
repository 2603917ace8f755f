// SPDX-License-Identifier: Apache-2.0

package result

import "github.com/moorage-dev/moorage/test/bench/internal/record"

// Schema names the format of result files.
const Schema = "moorage.dev/bench-node/v1"

// Result is one session: its origin, and its cases.
type Result struct {
	Schema string `json:"schema"`
	record.Head
	Runs []Run `json:"runs"`
}

// Run is one moorage-node at one node.
type Run struct {
	// Volumes and Pods are the node's numbers, and Mounts the number of mounts in the kubelet's
	// folder.
	Volumes int `json:"volumes"`
	Pods    int `json:"pods"`
	Mounts  int `json:"mounts"`
	// ToldSeconds is from the start of the process until a watch shows all volumes.
	ToldSeconds float64 `json:"toldSeconds"`
	Rest        Rest    `json:"rest"`
	Changes     Changes `json:"changes"`
}

// Rest is a time without changes of mounts.
type Rest struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	// Memory is at the end of it.
	Memory Memory `json:"memory"`
	// Requests of the API server, by its audit log.
	Requests Requests `json:"requests"`
}

// Memory is a process's memory, in MiB.
type Memory struct {
	// AnonMiB is its own: heap and stacks.
	AnonMiB float64 `json:"anonMiB"`
	// FileMiB is its mapped files in memory, almost all of its program.
	FileMiB float64 `json:"fileMiB"`
	// ResidentMiB is both, and PeakMiB the peak.
	ResidentMiB float64 `json:"residentMiB"`
	PeakMiB     float64 `json:"peakMiB"`
}

// Requests are the requests of moorage-node's account.
type Requests struct {
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
	// Watches is how many ended, after the minutes that clients have them last.
	Watches int `json:"watches"`
}

// Changes are volumes that are staged and published, and taken away again.
type Changes struct {
	// Seconds are, in order, from before the first mount of each until a watch shows the node's
	// report of it.
	Seconds    []float64 `json:"seconds"`
	CPUSeconds float64   `json:"cpuSeconds"`
	Requests   Requests  `json:"requests"`
}

// Read reads a result file.
func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }
