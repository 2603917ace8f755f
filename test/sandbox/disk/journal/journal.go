// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Journal is for serial use.
type Journal struct {
	file *os.File
}

// Open locks the journal file in dir, and returns its entries in order. A last line that a crash cut off is
// dropped; any other damage is an error.
func Open(dir string) (*Journal, []diskapi.Entry, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("create the state folder: %w", err)
	}
	path := filepath.Join(dir, "journal.jsonl")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("open the journal: %w", err)
	}
	entries, err := load(f)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), f.Close())
	}
	return &Journal{file: f}, entries, nil
}

func load(f *os.File) ([]diskapi.Entry, error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another disk service uses this state folder, stop it or choose another --state-dir: %w", err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	entries, whole, err := parse(data)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(whole)); err != nil {
		return nil, fmt.Errorf("drop a cut-off last line: %w", err)
	}
	if _, err := f.Seek(int64(whole), io.SeekStart); err != nil {
		return nil, fmt.Errorf("seek: %w", err)
	}
	return entries, nil
}

// whole is the length of the whole lines.
func parse(data []byte) (entries []diskapi.Entry, whole int, err error) {
	for line := 1; ; line++ {
		end := bytes.IndexByte(data[whole:], '\n')
		if end < 0 {
			return entries, whole, nil
		}
		var e diskapi.Entry
		if err := json.Unmarshal(data[whole:whole+end], &e); err != nil {
			return nil, 0, fmt.Errorf("line %d is damaged, remove the state folder to start afresh: %w", line, err)
		}
		if want := uint64(line); e.Seq != want {
			return nil, 0, fmt.Errorf("line %d has sequence number %d, remove the state folder to start afresh", line, e.Seq)
		}
		entries = append(entries, e)
		whole += end + 1
	}
}

func (j *Journal) Append(e diskapi.Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode entry %d: %w", e.Seq, err)
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("append entry %d to the journal: %w", e.Seq, err)
	}
	return nil
}

func (j *Journal) Close() error { return j.file.Close() }
