// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (s *story) calls(call diskapi.Call, phase diskapi.Phase, handle, node string) []diskapi.Entry {
	return s.View.Calls(diskapi.Filter{Call: call, Phase: phase, Volume: handle, Node: diskapi.NodeID(node)})
}

func last(entries []diskapi.Entry) diskapi.Entry { return entries[len(entries)-1] }

// goesOn fails unless a pod at another node wrote before, and all its flushed writes are found.
func (s *story) goesOn(handle, from, to string) {
	var next diskapi.Entry
	s.until("the pod at "+to+" writes to the volume", func() error {
		began := s.calls(diskapi.WriteBegan, diskapi.Noted, handle, to)
		if len(began) == 0 {
			return errors.New("it does not")
		}
		next = last(began)
		return nil
	})
	before := slices.Concat(
		s.calls(diskapi.WriteBegan, diskapi.Noted, handle, from), s.calls(diskapi.Wrote, diskapi.Noted, handle, from),
		s.calls(diskapi.NodeUnpublish, diskapi.Applied, handle, from))
	flushed := lastFlushed(before)
	s.expect(flushed > 0, "the pod at "+from+" has written to the volume, and flushed that", "it has not: %v", before)
	s.expect(next.Write.Flushed == flushed, "the pod at "+to+" finds what was flushed", "that was write %d, it finds %d", flushed, next.Write.Flushed)
}

func lastFlushed(entries []diskapi.Entry) uint64 {
	flushed := uint64(0)
	for _, e := range entries {
		if e.Write != nil {
			flushed = max(flushed, e.Write.Flushed)
		}
	}
	return flushed
}

func (s *story) findsAll(handle, node string, since uint64) {
	var next diskapi.Entry
	s.until("the pod at "+node+" writes to the volume", func() error {
		for _, e := range s.calls(diskapi.WriteBegan, diskapi.Noted, handle, node) {
			if e.Seq > since {
				next = e
				return nil
			}
		}
		return errors.New("it does not")
	})
	flushed := lastFlushed(slices.DeleteFunc(s.View.Calls(diskapi.Filter{Volume: handle}), func(e diskapi.Entry) bool { return e.Seq >= next.Seq }))
	s.expect(flushed > 0 && next.Write.Flushed == flushed, "the pod at "+node+" finds what was flushed", "that was write %d, it finds %d", flushed, next.Write.Flushed)
}

func (s *story) never(call diskapi.Call, handle, node string) {
	calls := s.calls(call, diskapi.Arrived, handle, node)
	s.expect(len(calls) == 0, fmt.Sprintf("there is no %s of the volume for %s", call, node), "there were %d", len(calls))
}

func (s *story) detachBegins(handle, node string) {
	s.until("the detach from "+node+" begins", func() error {
		if len(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, handle, node)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
}

func (s *story) detachedBefore(attach diskapi.Entry, node string) {
	over := false
	for _, e := range s.calls(diskapi.ControllerUnpublish, diskapi.Returned, attach.Volume, node) {
		over = over || e.Done() && e.Seq < attach.Seq
	}
	s.expect(over, "the detach from "+node+" was over before the attach began", "it was not")
}

func (s *story) breakCalls(fault diskapi.Fault) (mend func()) {
	set, err := s.Disk.SetFault(s.ctx, fault)
	s.must(err)
	return func() { s.must(s.Disk.ClearFault(s.ctx, set.ID)) }
}

func (s *story) hangDetach(handle string) (mend func()) {
	return s.breakCalls(diskapi.Fault{
		Calls: []diskapi.Call{diskapi.ControllerUnpublish}, Volume: handle, Action: diskapi.Hang,
	})
}

const diskBusy = "the disk is busy"

func (s *story) failDetach(handle string) (mend func()) {
	return s.breakCalls(diskapi.Fault{
		Calls: []diskapi.Call{diskapi.ControllerUnpublish}, Volume: handle,
		Action: diskapi.Fail, Code: "Internal", Message: diskBusy,
	})
}
