// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// WriteWhole writes a file that only its owner may read, under its name once it is whole.
func WriteWhole(name string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".moorage-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
