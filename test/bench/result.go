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

const Schema = "moorage.dev/bench/v1"

type Result struct {
	Schema string `json:"schema"`
	record.Head
	Runs []Run `json:"-"`
}

type Run struct {
	Case  Case  `json:"case"`
	Setup Setup `json:"setup"`
	// Repeat counts the runs of the same case and setup, from 1.
	Repeat     int       `json:"repeat"`
	Started    time.Time `json:"started"`
	Kubernetes string    `json:"kubernetes,omitempty"`
	// Failed is empty if the run counts.
	Failed string `json:"failed,omitempty"`
	// AllRunning and AllDetached are milliseconds, from the first creation or deletion.
	AllRunning  float64 `json:"allRunningMs,omitempty"`
	AllDetached float64 `json:"allDetachedMs,omitempty"`
	// Samples are milliseconds per pod, by Metric.Key.
	Samples      map[string]Samples `json:"samplesMs,omitempty"`
	AttachWrites []Write            `json:"attachWrites,omitempty"`
	DetachWrites []Write            `json:"detachWrites,omitempty"`
	// CPU is seconds by component, from the first creation to the run's end.
	CPU map[string]float64 `json:"cpuSeconds,omitempty"`
}

func (r Result) Setups() []Setup {
	var out []Setup
	for _, setup := range Setups() {
		if slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Setup == setup }) {
			out = append(out, setup)
		}
	}
	return out
}

func (r Result) Cases() []Case {
	var out []Case
	for _, run := range r.Runs {
		if !slices.Contains(out, run.Case) {
			out = append(out, run.Case)
		}
	}
	return out
}

func (r Result) Failures() []error {
	var out []error
	for _, run := range r.Runs {
		if run.Failed != "" {
			out = append(out, fmt.Errorf("%s in mode %s: %s", run.Case.Name(), run.Setup, run.Failed))
		}
	}
	return out
}

// Each run has a compact line: thousands of samples stay readable in a diff.
type envelope struct {
	*Result
	Raw []json.RawMessage `json:"runs"`
}

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

func (r Result) Save(name string) error {
	data, err := r.Encode()
	if err != nil {
		return err
	}
	return record.Replace(name, data)
}
