// SPDX-License-Identifier: Apache-2.0

// Package file writes result files.
package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces a file in one step: whoever reads it sees the old content or
// the new one, whole.
func Write(name string, data []byte) (err error) {
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
