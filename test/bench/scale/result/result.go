// SPDX-License-Identifier: Apache-2.0

package result

import (
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

const Schema = "moorage.dev/bench-scale/v1"

type Result struct {
	Schema string `json:"schema"`
	record.Head
	Runs []Run `json:"runs"`
}

type Load struct {
	Nodes int `json:"nodes"`
	// Volumes and Pods are totals.
	Volumes int `json:"volumes"`
	Pods    int `json:"pods"`
	// Slots is per node.
	Slots int `json:"slots"`
	// LatencySeconds is the time of an attach, and of a detach; StatusSeconds the
	// nodeStatusUpdateFrequency.
	LatencySeconds float64 `json:"latencySeconds"`
	StatusSeconds  float64 `json:"statusSeconds"`
	Attacher       string  `json:"attacher"`
}

type Run struct {
	// Mode standalone is Moorage.
	Mode string `json:"mode"`
	Load
	// Failed keeps the measurements before.
	Failed     string `json:"failed,omitempty"`
	Violations int    `json:"violations"`
	// BuildSeconds is from the first pod until all run.
	BuildSeconds float64    `json:"buildSeconds"`
	Rest         Rest       `json:"rest"`
	Quiet        Bystanders `json:"quiet"`
	Start        Start      `json:"start"`
	Storm        *Storm     `json:"storm,omitempty"`
	Drain        *Drain     `json:"drain,omitempty"`
	Change       *Storm     `json:"change,omitempty"`
}

type Rest struct {
	Seconds float64 `json:"seconds"`
	Use
}

type Use struct {
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// ResidentMiB is at the end.
	ResidentMiB map[string]float64 `json:"residentMiB"`
}

// Bystanders are pods with a volume each, independent of the measured load.
type Bystanders struct {
	// Bound, Attached and Running are seconds from before a pod's creation until a watch shows the stage.
	// Results before 26 November 2026 have Running only.
	Bound    []float64 `json:"bound,omitempty"`
	Attached []float64 `json:"attached,omitempty"`
	Running  []float64 `json:"running,omitempty"`
}

type Start struct {
	// DecidedSeconds is from the process's start to its first VolumeAttachment, AttachedSeconds until that
	// volume is attached, QuietSeconds to its last write.
	DecidedSeconds  float64 `json:"decidedSeconds"`
	AttachedSeconds float64 `json:"attachedSeconds"`
	QuietSeconds    float64 `json:"quietSeconds"`
	// CPUSeconds and PeakMiB are until it is quiet.
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakMiB    float64 `json:"peakMiB"`
	Writes     int     `json:"writes"`
}

type Writes struct {
	// All omits the load's own writes and bystanders' writes.
	All []audit.Write `json:"all"`
	// Refused counts the controller's refused writes, Again its repeated writes to an object, by verb and
	// resource.
	Refused int            `json:"refused"`
	Again   map[string]int `json:"again,omitempty"`
}

func (w Writes) Count() int {
	n := 0
	for _, one := range w.All {
		n += one.Count
	}
	return n
}

type Storm struct {
	Nodes   int `json:"nodes"`
	Volumes int `json:"volumes"`
	Pods    int `json:"pods"`
	// AttachedSeconds is from the first taint to the last attach elsewhere, RunningSeconds to the last pod,
	// QuietSeconds to the controller's last write.
	AttachedSeconds float64 `json:"attachedSeconds"`
	RunningSeconds  float64 `json:"runningSeconds"`
	QuietSeconds    float64 `json:"quietSeconds"`
	// KilledSeconds is 0 if the controller was not killed.
	KilledSeconds float64 `json:"killedSeconds,omitempty"`
	// Attached are seconds until a tenth, half and nine tenths of the volumes were attached elsewhere.
	Attached   []float64  `json:"attached"`
	Writes     Writes     `json:"writes"`
	Bystanders Bystanders `json:"bystanders"`
	Use        Use        `json:"use"`
}

type Drain struct {
	Nodes   int `json:"nodes"`
	AtOnce  int `json:"atOnce"`
	Volumes int `json:"volumes"`
	// Seconds is from the first eviction until the last pod runs elsewhere.
	Seconds float64 `json:"seconds"`
	// Away are the sorted seconds from an eviction until the successor runs.
	Away   []float64 `json:"away"`
	Writes Writes    `json:"writes"`
	Use    Use       `json:"use"`
}

func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }
