// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// replay also closes calls that the last process left open: their callers heard nothing, or a broken
// connection.
func (s *Service) replay(entries []diskapi.Entry) {
	s.entries = entries
	for _, e := range entries {
		if e.Phase == diskapi.Arrived {
			s.book.Hit(e.Call, subject(diskapi.Request{Call: e.Call, Volume: e.Volume, Args: e.Args}), e.Node)
		}
		s.fold(e)
	}
	for _, id := range slices.Sorted(maps.Keys(s.unclosed)) {
		a := s.unclosed[id]
		s.record(diskapi.Entry{
			ID: id, Phase: diskapi.Returned, Call: a.Call, Volume: a.Volume, Node: a.Node,
			Args: diskapi.Args{Path: a.Path}, Outcome: diskapi.Lost, Code: codes.Unavailable.String(),
			Detail: "the disk service was killed before it answered",
		})
	}
	s.note(diskapi.Entry{Call: diskapi.ServiceStarted})
}

// record writes a numbered entry to the journal, folds it and wakes readers of the log. Notes of writes
// come first. The caller holds mu. After a failed write nothing more is recorded: state that is not in the
// journal would be lost.
func (s *Service) record(e diskapi.Entry) diskapi.Entry {
	for _, before := range s.writes.Before(e) {
		s.recordOne(before)
	}
	return s.recordOne(e)
}

func (s *Service) recordOne(e diskapi.Entry) diskapi.Entry {
	if s.appendErr != nil {
		return e
	}
	e.Seq, e.Time = uint64(len(s.entries))+1, s.now()
	if e.ID == 0 {
		e.ID = e.Seq
	}
	if e.Phase == diskapi.Returned {
		e.DurationMs = float64(e.Time.Sub(s.entries[e.ID-1].Time)) / float64(time.Millisecond)
	}
	if s.appendErr = s.journal.Append(e); s.appendErr != nil {
		return e
	}
	s.entries = append(s.entries, e)
	s.fold(e)
	s.lose()
	close(s.grown)
	s.grown = make(chan struct{})
	return e
}

func (s *Service) note(e diskapi.Entry) diskapi.Entry {
	e.Phase = diskapi.Noted
	return s.record(e)
}

func (s *Service) fold(e diskapi.Entry) {
	s.cloud.Apply(e)
	s.writes.Apply(e)
	s.judge.Observe(e)
	switch e.Phase {
	case diskapi.Arrived:
		s.unclosed[e.ID] = e
		s.statsOf(e.Call).Arrived++
	case diskapi.Returned:
		delete(s.unclosed, e.ID)
		st := s.statsOf(e.Call)
		st.Outcomes[e.Outcome]++
		st.MaxMs = max(st.MaxMs, e.DurationMs)
		st.TotalMs += e.DurationMs
	case diskapi.Noted:
		s.foldNote(e)
	}
}

func (s *Service) foldNote(e diskapi.Entry) {
	switch e.Call {
	case diskapi.SetFault:
		s.book.Set(*e.Fault)
	case diskapi.ClearFault:
		s.book.Clear(e.FaultID)
	case diskapi.SetLatency:
		s.latency[e.LatencyOf] = time.Duration(e.LatencyMs) * time.Millisecond
	}
}

func (s *Service) statsOf(call diskapi.Call) *diskapi.CallStats {
	st, ok := s.stats[call]
	if !ok {
		st = &diskapi.CallStats{Outcomes: map[diskapi.Outcome]int{}}
		s.stats[call] = st
	}
	return st
}

// The slice is shared and must not be changed.
func (s *Service) since(seq uint64) (entries []diskapi.Entry, grown <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := min(seq, uint64(len(s.entries)))
	return s.entries[from:len(s.entries):len(s.entries)], s.grown
}

func (s *Service) Stats() diskapi.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := diskapi.Stats{
		Seq: uint64(len(s.entries)), Calls: map[diskapi.Call]*diskapi.CallStats{},
		Disks: len(s.cloud.Disks()), Snapshots: len(s.cloud.Snapshots()), Attachments: s.cloud.Attachments(),
		InFlight: s.cloud.InFlight(), Violations: s.judge.Count(),
	}
	for call, st := range s.stats {
		c := *st
		c.Outcomes = maps.Clone(st.Outcomes)
		out.Calls[call] = &c
	}
	return out
}

func (s *Service) Disks() []diskapi.Disk {
	s.mu.Lock()
	defer s.mu.Unlock()
	disks := s.cloud.Disks()
	for i := range disks {
		disks[i].Staged = s.judge.Staged(disks[i].Volume)
	}
	return disks
}

func (s *Service) Snapshots() []diskapi.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cloud.Snapshots()
}

func (s *Service) CutOff() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cloud.CutOff()
}

func (s *Service) Violations(since uint64) []diskapi.Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.judge.Violations()
	from, _ := slices.BinarySearchFunc(all, since+1, func(v diskapi.Violation, seq uint64) int {
		return cmp.Compare(v.Seq, seq)
	})
	return all[from:]
}
