// SPDX-License-Identifier: Apache-2.0

package result

import (
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

// Schema names the format of result files.
const Schema = "moorage.dev/bench-scale/v1"

// Result is one session: its origin, and its runs.
type Result struct {
	Schema string `json:"schema"`
	record.Head
	Runs []Run `json:"runs"`
}

// Load is a run's load.
type Load struct {
	Nodes int `json:"nodes"`
	// Volumes and Pods are totals.
	Volumes int `json:"volumes"`
	Pods    int `json:"pods"`
	// Slots is how many volumes a node can attach.
	Slots int `json:"slots"`
	// LatencySeconds is how long an attach takes, and a detach; StatusSeconds the nodes'
	// nodeStatusUpdateFrequency.
	LatencySeconds float64 `json:"latencySeconds"`
	StatusSeconds  float64 `json:"statusSeconds"`
	// Attacher is external-attacher or moorage-attacher.
	Attacher string `json:"attacher"`
}

// Run is one cluster, from its start to its end.
type Run struct {
	// Mode names the scheduling and attaching side: standalone is Moorage.
	Mode string `json:"mode"`
	Load
	// Failed says why the run did not come to its end; it keeps the measurements before.
	Failed string `json:"failed,omitempty"`
	// Violations is how many calls broke a rule, by the disk service's judgement.
	Violations int `json:"violations"`
	// BuildSeconds is from the first pod until all of them run.
	BuildSeconds float64    `json:"buildSeconds"`
	Rest         Rest       `json:"rest"`
	Quiet        Bystanders `json:"quiet"`
	Start        Start      `json:"start"`
	Storm        *Storm     `json:"storm,omitempty"`
	Drain        *Drain     `json:"drain,omitempty"`
	// Change is a storm with a killed controller.
	Change *Storm `json:"change,omitempty"`
}

// Rest is a time with nothing but heartbeats.
type Rest struct {
	Seconds float64 `json:"seconds"`
	Use
}

// Use is the use of processes, by component.
type Use struct {
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// ResidentMiB is at the end.
	ResidentMiB map[string]float64 `json:"residentMiB"`
}

// Bystanders are pods, each with a volume of its own, that come one after the other and are
// independent of the measured load.
type Bystanders struct {
	// Running are, in order of their creation, the seconds from before a pod's creation until a
	// watch shows that it runs; Bound and Attached until a watch shows that it has a node, and that
	// its volume is attached there. Results of before 26 November 2026 have Running only.
	Bound    []float64 `json:"bound,omitempty"`
	Attached []float64 `json:"attached,omitempty"`
	Running  []float64 `json:"running,omitempty"`
}

// Start is the controller started where all objects are there.
type Start struct {
	// DecidedSeconds is from the start of the process to its first VolumeAttachment, for a pod that
	// waits; AttachedSeconds until that volume is attached, QuietSeconds to its last write.
	DecidedSeconds  float64 `json:"decidedSeconds"`
	AttachedSeconds float64 `json:"attachedSeconds"`
	QuietSeconds    float64 `json:"quietSeconds"`
	// CPUSeconds and PeakMiB are the process's until it is quiet.
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakMiB    float64 `json:"peakMiB"`
	Writes     int     `json:"writes"`
}

// Writes are the writes of a phase.
type Writes struct {
	// All are all users' writes but the load's own and those for bystanders.
	All []audit.Write `json:"all"`
	// Refused is how many of the controller's were refused, and Again how many repeated an earlier
	// write to the same object, by verb and resource.
	Refused int            `json:"refused"`
	Again   map[string]int `json:"again,omitempty"`
}

// Count is the number of writes.
func (w Writes) Count() int {
	n := 0
	for _, one := range w.All {
		n += one.Count
	}
	return n
}

// Storm is many nodes that go out of service at once.
type Storm struct {
	// Nodes are out of service, with Volumes and Pods.
	Nodes   int `json:"nodes"`
	Volumes int `json:"volumes"`
	Pods    int `json:"pods"`
	// From the first taint: until the last volume is attached elsewhere, until the last pod runs
	// elsewhere, and to the controller's last write.
	AttachedSeconds float64 `json:"attachedSeconds"`
	RunningSeconds  float64 `json:"runningSeconds"`
	QuietSeconds    float64 `json:"quietSeconds"`
	// KilledSeconds is when the controller was killed; 0: it was not.
	KilledSeconds float64 `json:"killedSeconds,omitempty"`
	// Attached are the seconds until a tenth, half and nine tenths of the volumes were attached
	// elsewhere.
	Attached   []float64  `json:"attached"`
	Writes     Writes     `json:"writes"`
	Bystanders Bystanders `json:"bystanders"`
	Use        Use        `json:"use"`
}

// Drain is nodes that are emptied one after the other.
type Drain struct {
	Nodes   int `json:"nodes"`
	AtOnce  int `json:"atOnce"`
	Volumes int `json:"volumes"`
	// Seconds is from the first eviction until the last pod runs elsewhere.
	Seconds float64 `json:"seconds"`
	// Away are, in order of size, the seconds from a pod's eviction until its successor runs.
	Away   []float64 `json:"away"`
	Writes Writes    `json:"writes"`
	Use    Use       `json:"use"`
}

// Read reads a result file.
func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }
