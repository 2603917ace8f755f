// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func Schema(data []byte) (string, error) {
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return "", fmt.Errorf("result file: %w", err)
	}
	return head.Schema, nil
}

func Encode(result any) ([]byte, error) {
	data, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return append(data, '\n'), nil
}

// Decode wants the named schema, and refuses unknown fields.
func Decode(data []byte, schema string, result any) error {
	switch is, err := Schema(data); {
	case err != nil:
		return err
	case is != schema:
		return fmt.Errorf("result file of schema %q: %q is what this version reads", is, schema)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(result); err != nil {
		return fmt.Errorf("result file: %w", err)
	}
	return nil
}

// Read names the file in errors; a missing file is os.ErrNotExist.
func Read[Result any](name, schema string) (Result, error) {
	var none, result Result
	data, err := os.ReadFile(name)
	if err != nil {
		return none, fmt.Errorf("result file: %w", err)
	}
	if err := Decode(data, schema, &result); err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return result, nil
}

func Save(name string, result any) error {
	data, err := Encode(result)
	if err != nil {
		return err
	}
	return Replace(name, data)
}

// Replace shows readers the whole old content or the whole new content.
func Replace(name string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".bench-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(tmp.Name()))
	}
	return nil
}
