// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func log(entries ...diskapi.Entry) *State {
	s := &State{}
	for i, e := range entries {
		e.Seq = uint64(i + 1)
		s.Apply(e)
	}
	return s
}

func noted(call diskapi.Call, node string, session, written, flushed uint64) diskapi.Entry {
	e := diskapi.Entry{Phase: diskapi.Noted, Call: call, Volume: "v", Node: node}
	if call == diskapi.WriteBegan || call == diskapi.Wrote {
		e.Write = &diskapi.WriteMark{Session: session, Written: written, Flushed: flushed}
	}
	return e
}

func ends(call diskapi.Call, node string, session, flushed uint64) diskapi.Entry {
	e := diskapi.Entry{Phase: diskapi.Applied, Call: call, Volume: "v", Node: node}
	if session != 0 {
		e.Write = &diskapi.WriteMark{Session: session, Written: flushed, Flushed: flushed}
	}
	return e
}

func finds(t *testing.T, s *State) uint64 {
	t.Helper()
	note, ok := s.Take("new", diskapi.Write{Volume: "v"}, "")
	if !ok || note.Call != diskapi.WriteBegan || note.Write.Written != note.Write.Flushed+1 {
		t.Fatalf("a new writer is told %+v, %t", note, ok)
	}
	return note.Write.Flushed
}

func TestApply(t *testing.T) {
	began, other := noted(diskapi.WriteBegan, "a", 0, 1, 0), noted(diskapi.WriteBegan, "b", 0, 5, 4)
	for name, test := range map[string]struct {
		log   []diskapi.Entry
		finds uint64
		going bool // the writer at a
	}{
		"a first write is in memory":      {[]diskapi.Entry{began}, 0, true},
		"a write":                         {[]diskapi.Entry{began, noted(diskapi.Wrote, "a", 1, 5, 4)}, 4, true},
		"of another session":              {[]diskapi.Entry{began, noted(diskapi.Wrote, "a", 7, 5, 4)}, 0, true},
		"of nobody":                       {[]diskapi.Entry{began, noted(diskapi.Wrote, "c", 1, 5, 4)}, 0, true},
		"an unmount":                      {[]diskapi.Entry{began, ends(diskapi.NodeUnpublish, "a", 1, 5)}, 5, false},
		"an unstage":                      {[]diskapi.Entry{began, ends(diskapi.NodeUnstage, "a", 1, 5)}, 5, false},
		"a mount ends nobody":             {[]diskapi.Entry{began, ends(diskapi.NodePublish, "a", 1, 5)}, 0, true},
		"an unmount of another session":   {[]diskapi.Entry{began, ends(diskapi.NodeUnpublish, "a", 7, 5)}, 0, true},
		"an unmount of a reader":          {[]diskapi.Entry{began, ends(diskapi.NodeUnpublish, "a", 0, 0)}, 0, true},
		"an unmount of nobody":            {[]diskapi.Entry{began, ends(diskapi.NodeUnpublish, "c", 1, 5)}, 0, true},
		"an unmount after a refusal":      {[]diskapi.Entry{began, noted(diskapi.WriteRefused, "a", 0, 0, 0), ends(diskapi.NodeUnpublish, "a", 1, 5)}, 0, false},
		"a machine that is off":           {[]diskapi.Entry{began, noted(diskapi.Wrote, "a", 1, 5, 4), noted(diskapi.FenceNode, "a", 0, 0, 0)}, 4, false},
		"another machine that is off":     {[]diskapi.Entry{began, noted(diskapi.FenceNode, "b", 0, 0, 0)}, 0, true},
		"a machine that is on again":      {[]diskapi.Entry{began, noted(diskapi.UnfenceNode, "a", 0, 0, 0)}, 0, true},
		"a volume that was deleted":       {[]diskapi.Entry{began, noted(diskapi.Wrote, "a", 1, 5, 4), ends(diskapi.DeleteVolume, "", 0, 0)}, 0, false},
		"who flushed last is on the disk": {[]diskapi.Entry{began, noted(diskapi.Wrote, "a", 1, 5, 4), other, noted(diskapi.Wrote, "b", 3, 10, 9), noted(diskapi.Wrote, "a", 1, 6, 4)}, 9, true},
		"an unmount that flushes nothing": {[]diskapi.Entry{began, noted(diskapi.Wrote, "a", 1, 5, 4), other, noted(diskapi.Wrote, "b", 3, 10, 9), ends(diskapi.NodeUnpublish, "a", 1, 4)}, 9, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := log(test.log...)
			if got := s.Answer("v", "a").Session != 0; got != test.going {
				t.Errorf("the writer at a goes on: %t", got)
			}
			if got := finds(t, s); got != test.finds {
				t.Errorf("the next one finds write %d, want %d", got, test.finds)
			}
		})
	}
}

// A write that is not the writer's next changes nothing, and is not noted.
func TestTakeOldWrites(t *testing.T) {
	for name, w := range map[string]diskapi.WriteMark{
		"of a writer that has ended": {Session: 7, Written: 8, Flushed: 8},
		"made again":                 {Session: 1, Written: 5, Flushed: 5},
		"an older one":               {Session: 1, Written: 3, Flushed: 2},
	} {
		s := log(noted(diskapi.WriteBegan, "a", 0, 1, 0), noted(diskapi.Wrote, "a", 1, 5, 4))
		if note, ok := s.Take("a", diskapi.Write{Volume: "v", WriteMark: w}, ""); ok {
			t.Errorf("%s: noted is %+v", name, note)
		}
		if got, want := s.Answer("v", "a").WriteMark, (diskapi.WriteMark{Session: 1, Written: 5, Flushed: 4}); got != want {
			t.Errorf("%s: the writer is at %+v, want %+v", name, got, want)
		}
		if got := finds(t, s); got != 4 {
			t.Errorf("%s: write %d is on the disk", name, got)
		}
	}
	if note, ok := log().Take("a", diskapi.Write{Volume: "v", WriteMark: diskapi.WriteMark{Session: 7, Written: 8}}, ""); ok {
		t.Errorf("nobody's write: noted is %+v", note)
	}
}

// A write without a new flush keeps on the disk what others have flushed.
func TestTakeFlushesNothing(t *testing.T) {
	s := log(noted(diskapi.WriteBegan, "a", 0, 1, 0), noted(diskapi.Wrote, "a", 1, 5, 4),
		noted(diskapi.WriteBegan, "b", 0, 5, 4), noted(diskapi.Wrote, "b", 3, 10, 9))
	s.Take("a", diskapi.Write{Volume: "v", WriteMark: diskapi.WriteMark{Session: 1, Written: 6, Flushed: 4}}, "")
	if got := finds(t, s); got != 9 {
		t.Errorf("write %d is on the disk, want 9", got)
	}
}

// Before a change of writers, the log has the progress of the writers concerned.
func TestBefore(t *testing.T) {
	for _, test := range []struct {
		call         diskapi.Call
		phase        diskapi.Phase
		volume, node string
		want         int // of the writers of v at a and b, and of w at a
	}{
		{diskapi.ControllerPublish, diskapi.Applied, "v", "c", 2},
		{diskapi.ControllerPublish, diskapi.Arrived, "v", "c", 0},
		{diskapi.ControllerUnpublish, diskapi.Applied, "v", "a", 2},
		{diskapi.ControllerUnpublish, diskapi.Returned, "v", "a", 0},
		{diskapi.WriteBegan, diskapi.Noted, "v", "c", 2},
		{diskapi.WriteRefused, diskapi.Noted, "w", "a", 1},
		{diskapi.Wrote, diskapi.Noted, "v", "a", 0},
		{diskapi.FenceNode, diskapi.Noted, "", "a", 2},
		{diskapi.FenceNode, diskapi.Noted, "", "b", 1},
		{diskapi.FenceNetwork, diskapi.Applied, "", "", 3},
		{diskapi.FenceNetwork, diskapi.Arrived, "", "", 0},
		{diskapi.UnfenceNetwork, diskapi.Applied, "", "", 3},
		{diskapi.UnfenceNetwork, diskapi.Arrived, "", "", 0},
		{diskapi.NodeStage, diskapi.Applied, "v", "a", 0},
	} {
		w := noted(diskapi.WriteBegan, "a", 0, 1, 0)
		w.Volume = "w"
		s := log(noted(diskapi.WriteBegan, "a", 0, 1, 0), noted(diskapi.WriteBegan, "b", 0, 1, 0), w)
		next := func(volume, node string, session uint64) bool {
			mark := s.Answer(volume, node).WriteMark
			note, ok := s.Take(node, diskapi.Write{Volume: volume, WriteMark: diskapi.WriteMark{Session: session, Written: mark.Written + 1, Flushed: mark.Written}}, "")
			if ok {
				note.Phase = diskapi.Noted
				s.Apply(note)
			}
			return ok
		}
		all := func() (n int) {
			for i, at := range [][2]string{{"v", "a"}, {"v", "b"}, {"w", "a"}} {
				if next(at[0], at[1], uint64(i+1)) {
					n++
				}
			}
			return n
		}
		all() // of whom another one has begun after, the next write is noted
		if n := all(); n != 0 {
			t.Fatalf("%d of the third writes are noted", n)
		}
		e := diskapi.Entry{Phase: test.phase, Call: test.call, Volume: test.volume, Node: test.node}
		notes := s.Before(e)
		if len(notes) != test.want {
			t.Errorf("%s %s: %d notes before it, want %d", test.call, test.phase, len(notes), test.want)
		}
		for _, note := range notes {
			if note.Call != diskapi.Wrote || note.Phase != diskapi.Noted || note.Write.Written != 3 || note.Write.Flushed != 2 {
				t.Errorf("%s %s: note %+v, %+v", test.call, test.phase, note, note.Write)
			}
		}
	}
}
