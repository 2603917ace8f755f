// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"maps"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// State knows the disks' contents and writers. It is for serial use. The zero value is ready.
type State struct {
	disks map[string]*disk
}

type disk struct {
	flushed uint64
	writers map[string]*writer // by node
}

type writer struct {
	diskapi.WriteMark
	noted   uint64
	changed bool
	refused bool
}

const readOnly = "a write was refused before: unmount the volume first"

// Take takes a write, unless the caller names a refusal. The write is carried out when the returned note is
// applied.
func (s *State) Take(node string, w diskapi.Write, refusal string) (note diskapi.Entry, noted bool) {
	note = diskapi.Entry{Volume: w.Volume, Node: node}
	have := s.writer(w.Volume, node)
	switch {
	case refusal != "":
		note.Call, note.Detail = diskapi.WriteRefused, refusal
		return note, have == nil || !have.refused
	case have == nil && w.Session == 0:
		found := s.OnDisk(w.Volume)
		note.Call, note.AccessMode = diskapi.WriteBegan, w.AccessMode
		note.Write = &diskapi.WriteMark{Written: found + 1, Flushed: found}
		return note, true
	case have == nil || have.refused || have.Session != w.Session || w.Written <= have.Written:
		return note, false
	}
	have.Written = w.Written
	if w.Flushed > have.Flushed {
		have.Flushed, s.disks[w.Volume].flushed = w.Flushed, w.Flushed
	}
	note.Call, note.Write = diskapi.Wrote, new(have.WriteMark)
	return note, have.changed
}

func (s *State) Answer(volume, node string) diskapi.WriteAnswer {
	a := diskapi.WriteAnswer{Volume: volume}
	if w := s.writer(volume, node); w != nil {
		a.WriteMark = w.WriteMark
		if w.refused {
			a.Refused = readOnly
		}
	}
	return a
}

// Before returns the writers' progress that the log must have before an entry.
func (s *State) Before(e diskapi.Entry) []diskapi.Entry {
	var notes []diskapi.Entry
	s.concerned(e, func(volume, node string, w *writer) {
		if w.noted != w.Written {
			notes = append(notes, diskapi.Entry{
				Phase: diskapi.Noted, Call: diskapi.Wrote, Volume: volume, Node: node, Args: diskapi.Args{Write: new(w.WriteMark)},
			})
		}
	})
	return notes
}

// concerned visits, in a fixed order, the writers that an entry may end or harm.
func (s *State) concerned(e diskapi.Entry, visit func(volume, node string, w *writer)) {
	switch e.Call {
	case diskapi.WorkBegan:
		s.visit([]string{e.Volume}, "", visit)
	case diskapi.ControllerPublish, diskapi.ControllerUnpublish:
		if e.Phase == diskapi.Applied {
			s.visit([]string{e.Volume}, "", visit)
		}
	case diskapi.WriteBegan, diskapi.WriteRefused:
		s.visit([]string{e.Volume}, "", visit)
	case diskapi.FenceNode:
		s.visit(slices.Sorted(maps.Keys(s.disks)), e.Node, visit)
	case diskapi.FenceNetwork, diskapi.UnfenceNetwork:
		if e.Phase == diskapi.Applied {
			s.visit(slices.Sorted(maps.Keys(s.disks)), "", visit)
		}
	}
}

func (s *State) visit(volumes []string, at string, visit func(volume, node string, w *writer)) {
	for _, volume := range volumes {
		d, ok := s.disks[volume]
		if !ok {
			continue
		}
		for _, node := range slices.Sorted(maps.Keys(d.writers)) {
			if at == "" || at == node {
				visit(volume, node, d.writers[node])
			}
		}
	}
}

func (s *State) Flushed(volume, node string) uint64 {
	if w := s.writer(volume, node); w != nil {
		return w.Flushed
	}
	return 0
}

func (s *State) writer(volume, node string) *writer {
	d, ok := s.disks[volume]
	if !ok {
		return nil
	}
	return d.writers[node]
}

func (s *State) OnDisk(volume string) uint64 {
	if d, ok := s.disks[volume]; ok {
		return d.flushed
	}
	return 0
}
