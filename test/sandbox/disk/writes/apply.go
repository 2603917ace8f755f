// SPDX-License-Identifier: Apache-2.0

package writes

import "github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"

// Apply folds a log entry into the state. It passes over entries that concern no writer.
func (s *State) Apply(e diskapi.Entry) {
	s.concerned(e, func(_, _ string, w *writer) { w.changed = true })
	switch e.Phase {
	case diskapi.Noted:
		s.applyNote(e)
	case diskapi.Applied:
		s.applyCall(e)
	}
}

func (s *State) applyNote(e diskapi.Entry) {
	switch e.Call {
	case diskapi.WriteBegan:
		mark := *e.Write
		mark.Session = e.Seq
		s.disk(e.Volume).writers[e.Node] = &writer{WriteMark: mark, noted: mark.Written}
	case diskapi.Wrote:
		if w := s.writer(e.Volume, e.Node); w != nil && w.Session == e.Write.Session {
			if e.Write.Flushed > w.Flushed { // in memory it is so already
				s.disks[e.Volume].flushed = e.Write.Flushed
			}
			w.WriteMark, w.noted, w.changed = *e.Write, e.Write.Written, false
		}
	case diskapi.WriteRefused:
		if w := s.writer(e.Volume, e.Node); w != nil {
			w.refused = true
		}
	case diskapi.FenceNode:
		for _, d := range s.disks {
			delete(d.writers, e.Node)
		}
	}
}

func (s *State) applyCall(e diskapi.Entry) {
	switch e.Call {
	case diskapi.NodeUnpublish, diskapi.NodeUnstage:
		w := s.writer(e.Volume, e.Node)
		if w == nil || e.Write == nil || e.Write.Session != w.Session {
			return
		}
		if !w.refused && e.Write.Flushed > w.Flushed {
			s.disks[e.Volume].flushed = e.Write.Flushed
		}
		delete(s.disks[e.Volume].writers, e.Node)
	case diskapi.CreateVolume:
		if e.Write != nil { // a copy
			s.disk(e.Volume).flushed = e.Write.Flushed
		}
	case diskapi.DeleteVolume:
		delete(s.disks, e.Volume)
	}
}

func (s *State) disk(volume string) *disk {
	d, ok := s.disks[volume]
	if !ok {
		d = &disk{writers: map[string]*writer{}}
		if s.disks == nil {
			s.disks = map[string]*disk{}
		}
		s.disks[volume] = d
	}
	return d
}
