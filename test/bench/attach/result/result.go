// SPDX-License-Identifier: Apache-2.0

package result

import "github.com/moorage-dev/moorage/test/bench/internal/record"

// Schema names the format.
const Schema = "moorage.dev/bench-attach/v2"

// Result is a command's measurements, or several commands' in the same file.
type Result struct {
	Schema   string    `json:"schema"`
	Sessions []Session `json:"sessions"`
}

// Session is a command's measurements, in their order.
type Session struct {
	record.Head
	Runs []Run `json:"runs"`
}

// Case is one load on one attacher. Runs of the same case can be compared.
type Case struct {
	Setup   string `json:"setup"`
	Volumes int    `json:"volumes"`
	Nodes   int    `json:"nodes"`
	// LatencySeconds is how long the driver takes to attach, and to detach; Parallel, how many
	// calls it carries out at a time (0: any number). Further calls wait in the driver.
	LatencySeconds float64 `json:"latencySeconds"`
	Parallel       int     `json:"parallel,omitempty"`
}

// LimitSeconds is the driver's least time for the load: with all calls there at once, and as many
// at a time as it takes, until the last call's answer.
func (c Case) LimitSeconds() float64 {
	if c.Parallel == 0 {
		return c.LatencySeconds
	}
	turns := (c.Volumes + c.Parallel - 1) / c.Parallel
	return float64(turns) * c.LatencySeconds
}

// Run is one measurement of a case.
type Run struct {
	Case
	// Attach and Detach are the two halves, and Again is an attach of the same volumes once more,
	// with a driver that takes no time. Halves after an unfinished half are absent.
	Attach *Half `json:"attach,omitempty"`
	Detach *Half `json:"detach,omitempty"`
	Again  *Half `json:"again,omitempty"`
	// PeakMiB is the most resident memory of a process since it began.
	PeakMiB map[string]float64 `json:"peakMiB,omitempty"`
	// Failed says why a run failed.
	Failed string `json:"failed,omitempty"`
}

// Half is the attach, or the detach, of all volumes.
type Half struct {
	// Done is how many volumes were through by the deadline.
	Done int `json:"done"`
	// All times begin at the first request that the API server received. AskedSeconds: until the
	// answer to the last request. BegunSeconds: until the last volume's first call. CalledSeconds:
	// until the driver's last answer. SettledSeconds: until the answer to the last write of the
	// outcome.
	AskedSeconds   float64 `json:"askedSeconds"`
	BegunSeconds   float64 `json:"begunSeconds"`
	CalledSeconds  float64 `json:"calledSeconds"`
	SettledSeconds float64 `json:"settledSeconds"`
	// Writes of the attacher, by verb and resource, and the driver's calls.
	Writes map[string]int `json:"writes"`
	Calls  map[string]int `json:"calls"`
	// CPUSeconds of each process.
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
}

// Read reads a result file.
func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }
