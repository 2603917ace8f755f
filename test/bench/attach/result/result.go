// SPDX-License-Identifier: Apache-2.0

package result

import "github.com/moorage-dev/moorage/test/bench/internal/record"

const Schema = "moorage.dev/bench-attach/v2"

type Result struct {
	Schema   string    `json:"schema"`
	Sessions []Session `json:"sessions"`
}

type Session struct {
	record.Head
	Runs []Run `json:"runs"`
}

type Case struct {
	Setup   string `json:"setup"`
	Volumes int    `json:"volumes"`
	Nodes   int    `json:"nodes"`
	// LatencySeconds is the driver's time per call; Parallel its calls at a time (0: any number).
	LatencySeconds float64 `json:"latencySeconds"`
	Parallel       int     `json:"parallel,omitempty"`
}

// LimitSeconds is the driver's least time for the load, with all calls there at once.
func (c Case) LimitSeconds() float64 {
	if c.Parallel == 0 {
		return c.LatencySeconds
	}
	turns := (c.Volumes + c.Parallel - 1) / c.Parallel
	return float64(turns) * c.LatencySeconds
}

type Run struct {
	Case
	// Attach and Detach are the halves, and Again a second attach if the driver takes no time. Halves after
	// an unfinished half are absent.
	Attach *Half `json:"attach,omitempty"`
	Detach *Half `json:"detach,omitempty"`
	Again  *Half `json:"again,omitempty"`
	// PeakMiB is the most resident memory of a process since it began.
	PeakMiB map[string]float64 `json:"peakMiB,omitempty"`
	Failed  string             `json:"failed,omitempty"`
}

type Half struct {
	Done int `json:"done"`
	// AskedSeconds is to the last answer, BegunSeconds to the last volume's first call, CalledSeconds to
	// the driver's last answer, SettledSeconds to the last write's answer; all from the first received
	// request.
	AskedSeconds   float64            `json:"askedSeconds"`
	BegunSeconds   float64            `json:"begunSeconds"`
	CalledSeconds  float64            `json:"calledSeconds"`
	SettledSeconds float64            `json:"settledSeconds"`
	Writes         map[string]int     `json:"writes"`
	Calls          map[string]int     `json:"calls"`
	CPUSeconds     map[string]float64 `json:"cpuSeconds"`
}

func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }
