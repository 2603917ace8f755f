// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"
)

// volume is a staged volume.
type volume struct {
	StagingPath string            `json:"stagingPath"`
	Context     map[string]string `json:"context,omitempty"`
}

// staged is the set of staged volumes, kept in a file that stands for the mount
// table of the machine. It is safe for parallel use.
//
// Invariant: memory and file agree; a change that can't be written is not made.
type staged struct {
	path string

	mu    sync.Mutex
	table table
}

// table is what the file holds.
type table struct {
	// Boot is the service's count of the boots of the node in which this holds.
	Boot    int               `json:"boot"`
	Volumes map[string]volume `json:"volumes"`
}

func openStaged(path string) (*staged, error) {
	s := &staged{path: path, table: table{Volumes: map[string]volume{}}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the staged volumes: %w", err)
	}
	if err := json.Unmarshal(data, &s.table); err != nil {
		return nil, fmt.Errorf("staged volumes in %s are damaged, remove the file if the node was switched off: %w", path, err)
	}
	if s.table.Volumes == nil {
		s.table.Volumes = map[string]volume{}
	}
	return s, nil
}

// booted forgets everything if the machine was switched off since the file was
// written.
func (s *staged) booted(boot int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if boot == s.table.Boot {
		return nil
	}
	return s.write(table{Boot: boot, Volumes: map[string]volume{}})
}

func (s *staged) get(id string) (volume, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.table.Volumes[id]
	return v, ok
}

func (s *staged) put(id string, v volume) error {
	return s.change(func(m map[string]volume) { m[id] = v })
}

func (s *staged) remove(id string) error {
	return s.change(func(m map[string]volume) { delete(m, id) })
}

func (s *staged) change(f func(map[string]volume)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := table{Boot: s.table.Boot, Volumes: maps.Clone(s.table.Volumes)}
	f(next.Volumes)
	return s.write(next)
}

// write replaces the file, so that a reader sees the old or the new one.
func (s *staged) write(next table) error {
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode the staged volumes: %w", err)
	}
	tmp := s.path + ".new"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return fmt.Errorf("write the staged volumes: %w", err)
	}
	if err := os.Rename(tmp, s.path); err != nil {
		return fmt.Errorf("replace the staged volumes: %w", err)
	}
	s.table = next
	return nil
}
