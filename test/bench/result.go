// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
)

// Schema names the format of result files.
const Schema = "moorage.dev/bench/v1"

// Result is all measurements of a call of the benchmark, and their place.
type Result struct {
	// Schema names the format of the file.
	Schema string `json:"schema"`
	record.Head
	// Runs are in the order of their runs.
	Runs []Run `json:"-"`
}

// Run is one case in one setup on a fresh cluster.
type Run struct {
	Case  Case  `json:"case"`
	Setup Setup `json:"setup"`
	// Repeat counts the runs of the same case and setup, from 1.
	Repeat  int       `json:"repeat"`
	Started time.Time `json:"started"`
	// Kubernetes is the version that the API server reports.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Failed says why the run does not count; empty if it does.
	Failed string `json:"failed,omitempty"`
	// AllRunning and AllDetached are how long the whole load took, in milliseconds: from the first
	// creation until the last pod ran, and from the first deletion until the last volume was
	// detached.
	AllRunning  float64 `json:"allRunningMs,omitempty"`
	AllDetached float64 `json:"allDetachedMs,omitempty"`
	// Samples are in milliseconds, one per pod, by Metric.Key.
	Samples map[string]Samples `json:"samplesMs,omitempty"`
	// AttachWrites and DetachWrites are the API server's writes by phase.
	AttachWrites []Write `json:"attachWrites,omitempty"`
	DetachWrites []Write `json:"detachWrites,omitempty"`
	// CPU is the CPU time by component, in seconds, from the first creation to the end of the run.
	CPU map[string]float64 `json:"cpuSeconds,omitempty"`
}

// Setups lists the measured setups, in the order of Setups.
func (r Result) Setups() []Setup {
	var out []Setup
	for _, setup := range Setups() {
		if slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Setup == setup }) {
			out = append(out, setup)
		}
	}
	return out
}

// Cases lists the measured cases, in the order of their first runs.
func (r Result) Cases() []Case {
	var out []Case
	for _, run := range r.Runs {
		if !slices.Contains(out, run.Case) {
			out = append(out, run.Case)
		}
	}
	return out
}

// Failures lists the runs that failed, as errors.
func (r Result) Failures() []error {
	var out []error
	for _, run := range r.Runs {
		if run.Failed != "" {
			out = append(out, fmt.Errorf("%s in mode %s: %s", run.Case.Name(), run.Setup, run.Failed))
		}
	}
	return out
}

// envelope is a result file: the runs are compact, one per line, which keeps thousands of samples
// readable in a diff.
type envelope struct {
	*Result
	Raw []json.RawMessage `json:"runs"`
}

// Encode writes a result as JSON.
func (r Result) Encode() ([]byte, error) {
	r.Schema = Schema
	head, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	var out bytes.Buffer
	out.Write(bytes.TrimSuffix(head, []byte("\n}")))
	out.WriteString(",\n  \"runs\": [")
	for i, run := range r.Runs {
		line, err := json.Marshal(run)
		if err != nil {
			return nil, fmt.Errorf("encode the result: %w", err)
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n    ")
		out.Write(line)
	}
	out.WriteString("\n  ]\n}\n")
	return out.Bytes(), nil
}

// Decode reads the output of Encode.
func Decode(data []byte) (Result, error) {
	var r Result
	e := envelope{Result: &r}
	if err := json.Unmarshal(data, &e); err != nil {
		return r, fmt.Errorf("result file: %w", err)
	}
	if r.Schema != Schema {
		return r, fmt.Errorf("result file of schema %q: %q is what this version reads", r.Schema, Schema)
	}
	for i, raw := range e.Raw {
		var run Run
		if err := json.Unmarshal(raw, &run); err != nil {
			return r, fmt.Errorf("result file, run %d: %w", i+1, err)
		}
		r.Runs = append(r.Runs, run)
	}
	return r, nil
}

// Load reads a result file.
func Load(name string) (Result, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return Result{}, fmt.Errorf("result file: %w", err)
	}
	r, err := Decode(data)
	if err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Save writes a whole result file.
func (r Result) Save(name string) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	return record.Replace(name, data)
}
