// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type work struct {
	operation     diskapi.Operation
	whileAttached bool
	torn          bool
	// A copy has the disk's content at began: flushed is the last write then.
	began   time.Time
	flushed uint64
}

// A group has a work for each of its volumes.
type workKey struct {
	id     uint64
	volume string
}

func (s *State) allows(o diskapi.Operation, d *disk) (Decision, bool) {
	if slices.Contains(s.attachFor, o) && !s.reachable(d) {
		return refuse(codes.FailedPrecondition, "volume %s is attached to no node that runs: its %s needs it attached", d.Volume, o), false
	}
	if slices.Contains(s.detachFor, o) {
		for node := range d.at {
			return refuse(codes.FailedPrecondition, "volume %s is attached to node %s: its %s needs it detached", d.Volume, node, o), false
		}
		for k, p := range s.pending {
			if k.volume == d.Volume && p.call == diskapi.ControllerPublish {
				return refuse(codes.FailedPrecondition, "volume %s is being attached to node %s: its %s needs it detached", d.Volume, k.node, o), false
			}
		}
	}
	for k, w := range s.works {
		if k.volume == d.Volume && w.operation == diskapi.ExpandVolume {
			return refuse(codes.Aborted, "%s (call %d) is going on for volume %s, try again when it is over", w.operation, k.id, d.Volume), false
		}
	}
	return Decision{}, true
}

// reachable disks are at a running node that the storage lets in: a copy through the node makes progress.
func (s *State) reachable(d *disk) bool {
	for node := range d.at {
		if n, ok := s.nodes[node]; ok && !n.Fenced && !s.isCut(node) {
			return true
		}
	}
	return false
}

// The volume must not be attached during the work.
func (s *State) detached(volume string) (workKey, work, bool) {
	for k, w := range s.works {
		if k.volume == volume && slices.Contains(s.detachFor, w.operation) {
			return k, *w, true
		}
	}
	return workKey{}, work{}, false
}

func (s *State) begins(id uint64, o diskapi.Operation, volume string) diskapi.Entry {
	return diskapi.Entry{
		ID: id, Phase: diskapi.Noted, Call: diskapi.WorkBegan, Volume: volume,
		Args: diskapi.Args{Operated: diskapi.Operated{Operation: o, WhileAttached: slices.Contains(s.attachFor, o)}},
	}
}

func (s *State) Torn(id uint64) []diskapi.Entry {
	var notes []diskapi.Entry
	for _, k := range s.worksOf(id) {
		if w := s.works[k]; w.torn {
			notes = append(notes, diskapi.Entry{
				ID: id, Phase: diskapi.Noted, Call: diskapi.WorkTorn, Volume: k.volume,
				Detail: "volume " + k.volume + " was detached in the middle of its " + string(w.operation),
				Args:   diskapi.Args{Operated: diskapi.Operated{Operation: w.operation}},
			})
		}
	}
	return notes
}

func (s *State) worksOf(id uint64) []workKey {
	var keys []workKey
	for k := range s.works {
		if k.id == id {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b workKey) int { return compare(a.volume, b.volume) })
	return keys
}

func (s *State) tear() {
	for k, w := range s.works {
		if d, ok := s.disks[k.volume]; w.whileAttached && (!ok || !s.reachable(d)) {
			w.torn = true
		}
	}
}

func (s *State) endWorks(id uint64) {
	for _, k := range s.worksOf(id) {
		delete(s.works, k)
	}
}

// Copies behind answered snapshots go on after the service was killed.
func (s *State) dropWorks() {
	for k := range s.works {
		if len(s.unready(k.id)) == 0 {
			delete(s.works, k)
		}
	}
}

func (s *State) expand(id uint64, r diskapi.Request) Decision {
	d, ok := s.disks[r.Volume]
	if !ok {
		return refuse(codes.NotFound, "volume %q does not exist", r.Volume)
	}
	if r.SizeBytes <= d.SizeBytes {
		e := effect(r)
		e.SizeBytes = d.SizeBytes
		return settled(e, "was as large already")
	}
	if refusal, ok := s.allows(diskapi.ExpandVolume, d); !ok {
		return refusal
	}
	return Decision{Do: Start, Effect: effect(r), Begins: []diskapi.Entry{s.begins(id, diskapi.ExpandVolume, r.Volume)}}
}
