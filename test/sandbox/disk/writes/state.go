// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"maps"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// State has what is on the disks and who writes to them. It is for serial use. The zero value
// is empty and ready.
type State struct {
	disks map[string]*disk
}

// disk is a volume that was written to.
type disk struct {
	// flushed is the number of the write that was flushed last.
	flushed uint64
	writers map[string]*writer // by node
}

// writer is a mount of a volume that was written to, as its machine has it in memory.
type writer struct {
	diskapi.WriteMark
	// noted is Written as the log has it.
	noted uint64
	// changed: the next write is to be noted.
	changed bool
	// refused: a write was refused, and no other one will be taken.
	refused bool
}

// readOnly is what a writer is told that was refused before: its file system is read-only.
const readOnly = "a write was refused before: unmount the volume first"

// Take takes a write, unless it is refused for a reason that the caller names. It returns what
// is to be noted of it, if anything: only when that is applied is the write carried out. Answer
// then has what the writer is told.
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

// Answer is what the writer of a volume at a node is told.
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

// Before returns what is to be noted before an entry: how far the writers have come that it
// concerns, if the log does not have that yet.
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

// concerned visits the writers of whom an entry may change who can write, or what is lost, in
// a fixed order: those of a volume, those of a machine, or all.
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

// visit visits the writers of volumes at a node, or at any if it is empty.
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

// Flushed is the number of the last write of a node to a volume that is on the disk.
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

// OnDisk is the number of the last write that is on a disk.
func (s *State) OnDisk(volume string) uint64 {
	if d, ok := s.disks[volume]; ok {
		return d.flushed
	}
	return 0
}
