// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWriteToAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // open for reading and writing: neither end waits for its peer
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := WriteWhole(pipe, func(w io.Writer) error { _, err := io.WriteString(w, "page"); return err }); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode().IsRegular() {
		t.Fatalf("the pipe has become %v, %v", info, err)
	}
	text := make([]byte, 4)
	if _, err := io.ReadFull(reader, text); err != nil || string(text) != "page" {
		t.Errorf("read %q, %v", text, err)
	}
}
