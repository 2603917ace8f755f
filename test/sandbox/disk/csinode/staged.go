// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

type volume struct {
	StagingPath string            `json:"stagingPath"`
	Context     map[string]string `json:"context,omitempty"`
}

// staged has the staged and published volumes, in a file that stands for the machine's mounts. It is safe
// for parallel use.
//
// Invariant: memory and file agree; a change that can't be written is not made. The mount table beside it
// follows: after a kill the next process writes it.
type staged struct {
	path, mounts string

	mu    sync.Mutex
	table table
}

type table struct {
	Boot    int               `json:"boot"`
	Volumes map[string]volume `json:"volumes"`
	Targets map[string]string `json:"targets"`
	Writers map[string]string `json:"writers,omitempty"`
}

func openStaged(path, mounts string) (*staged, error) {
	s := &staged{path: path, mounts: mounts}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the staged volumes: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal(data, &s.table); err != nil {
			return nil, fmt.Errorf("staged volumes in %s are damaged, remove the file if the node was switched off: %w", path, err)
		}
	}
	if s.table.Volumes == nil {
		s.table.Volumes = map[string]volume{}
	}
	if s.table.Targets == nil {
		s.table.Targets = map[string]string{}
	}
	if s.table.Writers == nil {
		s.table.Writers = map[string]string{}
	}
	return s, replace(mounts, s.table.mountinfo())
}

// booted forgets everything if the machine was switched off since the file was
// written.
func (s *staged) booted(boot int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if boot == s.table.Boot {
		return nil
	}
	return s.write(table{Boot: boot, Volumes: map[string]volume{}, Targets: map[string]string{}, Writers: map[string]string{}})
}

func (s *staged) get(id string) (volume, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.table.Volumes[id]
	return v, ok
}

func (s *staged) put(id string, v volume) error {
	return s.change(func(t *table) { t.Volumes[id] = v })
}

// A removed volume gets no more writes.
func (s *staged) remove(id string) error {
	return s.change(func(t *table) {
		delete(t.Volumes, id)
		maps.DeleteFunc(t.Writers, func(target, _ string) bool { return t.Targets[target] == id })
	})
}

func (s *staged) publish(target, id, mode string) error {
	return s.change(func(t *table) {
		t.Targets[target] = id
		delete(t.Writers, target)
		if mode != "" {
			t.Writers[target] = mode
		}
	})
}

func (s *staged) publishedBeside(target, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, published := range s.table.Targets {
		if published == id && other != target {
			return true
		}
	}
	return false
}

func (s *staged) unpublish(target string) error {
	return s.change(func(t *table) {
		delete(t.Targets, target)
		delete(t.Writers, target)
	})
}

func (s *staged) writable() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for target, mode := range s.table.Writers {
		out[s.table.Targets[target]] = mode
	}
	return out
}

func (s *staged) lastWriter(target string) (volume string, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table.Writers[target] == "" {
		return "", false
	}
	volume = s.table.Targets[target]
	for other := range s.table.Writers {
		if other != target && s.table.Targets[other] == volume {
			return volume, false
		}
	}
	return volume, true
}

func (s *staged) boot() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Boot
}

func (s *staged) change(f func(*table)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := table{
		Boot: s.table.Boot, Volumes: maps.Clone(s.table.Volumes),
		Targets: maps.Clone(s.table.Targets), Writers: maps.Clone(s.table.Writers),
	}
	f(&next)
	return s.write(next)
}

func (s *staged) write(next table) error {
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode the staged volumes: %w", err)
	}
	if err := replace(s.path, data); err != nil {
		return err
	}
	s.table = next
	return replace(s.mounts, next.mountinfo())
}

// mountinfo is in the form of proc(5), on a machine with shared mounts: the root, and each staging path and
// target.
func (t table) mountinfo() []byte {
	var out bytes.Buffer
	line := func(point, source string) {
		fmt.Fprintf(&out, "%d 1 0:1 / %s rw shared:1 - disk %s rw\n", 2+bytes.Count(out.Bytes(), []byte("\n")), escape.Replace(point), escape.Replace(source))
	}
	line("/", "root")
	for _, id := range slices.Sorted(maps.Keys(t.Volumes)) {
		line(t.Volumes[id].StagingPath, id)
	}
	for _, target := range slices.Sorted(maps.Keys(t.Targets)) {
		line(target, t.Targets[target])
	}
	return out.Bytes()
}

// The kernel writes the separators so.
var escape = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)

// A reader sees the old file or the new file.
func replace(path string, data []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return fmt.Errorf("write what is mounted: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("replace what is mounted: %w", err)
	}
	return nil
}
