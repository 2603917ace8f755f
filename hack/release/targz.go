// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// krew's index asks for the licence. Without times, owners and names, the same files give the same bytes.
func targz(binary, license string) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, file := range []struct {
		path string
		mode int64
	}{{license, 0o644}, {binary, 0o755}} {
		raw, err := os.ReadFile(file.path)
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.Base(file.path), Mode: file.mode, Size: int64(len(raw)), ModTime: time.Unix(0, 0).UTC()}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(raw); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), zip.Close())
	return out.Bytes(), err
}
