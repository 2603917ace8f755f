// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/file"
	"github.com/moorage-dev/moorage/test/bench/origin"
)

// Head says what made a result.
type Head struct {
	// Command is the command line, as far as it says what to measure.
	Command string         `json:"command"`
	Source  origin.Source  `json:"source"`
	Started time.Time      `json:"started"`
	Machine origin.Machine `json:"machine"`
}

// Begin is the head of a result that is measured from now on.
func Begin(command string, source origin.Source) Head {
	return Head{
		Command: command, Source: source,
		Started: time.Now().UTC().Truncate(time.Second), Machine: origin.ThisMachine(),
	}
}

// Measured says in words what made a result; the sentence has no end yet.
func (h Head) Measured() string {
	return fmt.Sprintf("Measured by `%s` on %s: %s; %s", h.Command, h.Started.Format("2 January 2006"), h.Source, h.Machine)
}

// Encode writes a result as JSON.
func Encode(result any) ([]byte, error) {
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return append(data, '\n'), nil
}

// Decode reads a result file's content, which must be of the schema that is
// named and have no field that result doesn't have.
func Decode(data []byte, schema string, result any) error {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("result file: %w", err)
	}
	if head.Schema != schema {
		return fmt.Errorf("result file of schema %q: %q is what this version reads", head.Schema, schema)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(result); err != nil {
		return fmt.Errorf("result file: %w", err)
	}
	return nil
}

// Save writes a result file.
func Save(name string, result any) error {
	data, err := Encode(result)
	if err != nil {
		return err
	}
	return file.Write(name, data)
}
