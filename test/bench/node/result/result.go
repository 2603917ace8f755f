// SPDX-License-Identifier: Apache-2.0

package result

import "github.com/moorage-dev/moorage/test/bench/internal/record"

const Schema = "moorage.dev/bench-node/v1"

type Result struct {
	Schema string `json:"schema"`
	record.Head
	Runs []Run `json:"runs"`
}

type Run struct {
	// Volumes, Pods and Mounts are the node's numbers, Mounts in the kubelet's folder.
	Volumes int `json:"volumes"`
	Pods    int `json:"pods"`
	Mounts  int `json:"mounts"`
	// ToldSeconds is from the process's start until a watch shows all volumes.
	ToldSeconds float64 `json:"toldSeconds"`
	Rest        Rest    `json:"rest"`
	Changes     Changes `json:"changes"`
}

type Rest struct {
	Seconds    float64  `json:"seconds"`
	CPUSeconds float64  `json:"cpuSeconds"`
	Memory     Memory   `json:"memory"`
	Requests   Requests `json:"requests"`
}

type Memory struct {
	// AnonMiB is heap and stacks.
	AnonMiB float64 `json:"anonMiB"`
	// FileMiB is mapped files in memory, almost all the program.
	FileMiB     float64 `json:"fileMiB"`
	ResidentMiB float64 `json:"residentMiB"`
	PeakMiB     float64 `json:"peakMiB"`
}

type Requests struct {
	Writes int `json:"writes"`
	Reads  int `json:"reads"`
	// Watches end after the minutes that clients set.
	Watches int `json:"watches"`
}

type Changes struct {
	// Seconds are from before each first mount until a watch shows its report.
	Seconds    []float64 `json:"seconds"`
	CPUSeconds float64   `json:"cpuSeconds"`
	Requests   Requests  `json:"requests"`
}

func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }
