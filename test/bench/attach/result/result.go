// SPDX-License-Identifier: Apache-2.0

package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/test/bench/origin"
)

// Schema names the format.
const Schema = "moorage.dev/bench-attach/v1"

// Result is everything that one command measured.
type Result struct {
	Schema  string         `json:"schema"`
	Command string         `json:"command"`
	Source  origin.Source  `json:"source"`
	Machine origin.Machine `json:"machine"`
	Started time.Time      `json:"started"`
	Runs    []Run          `json:"runs"`
}

// Run is one load on one attacher.
type Run struct {
	Setup   string `json:"setup"`
	Volumes int    `json:"volumes"`
	Nodes   int    `json:"nodes"`
	// LatencySeconds is how long the driver takes to attach, and to detach.
	LatencySeconds float64 `json:"latencySeconds"`
	// Attach and Detach are the two halves; Detach is absent if the first was
	// not over by the deadline.
	Attach *Half `json:"attach,omitempty"`
	Detach *Half `json:"detach,omitempty"`
	// PeakMiB is the most memory that a process had resident since it began.
	PeakMiB map[string]float64 `json:"peakMiB,omitempty"`
	// Failed says why a run came to nothing.
	Failed string `json:"failed,omitempty"`
}

// Half is the attach or the detach of all volumes.
type Half struct {
	// Done is how many volumes were through by the deadline.
	Done int `json:"done"`
	// CalledSeconds is the time from the first request for it to the answer of
	// the last driver's call; SettledSeconds to the last one that the API shows.
	CalledSeconds  float64 `json:"calledSeconds"`
	SettledSeconds float64 `json:"settledSeconds"`
	// Writes of the attacher, by verb and resource, and the driver's calls.
	Writes map[string]int `json:"writes"`
	Calls  map[string]int `json:"calls"`
	// CPUSeconds of each process.
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
}

// Encode writes the result as a file has it.
func (r Result) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	return append(data, '\n'), nil
}

// Decode reads a file.
func Decode(data []byte) (Result, error) {
	var r Result
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return r, fmt.Errorf("result file: %w", err)
	}
	if r.Schema != Schema {
		return r, fmt.Errorf("result file has schema %q, not %q", r.Schema, Schema)
	}
	return r, nil
}
