// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// calls lists what a node was asked to do with a volume, in the disk service's
// own order.
func (s *story) calls(call diskapi.Call, phase diskapi.Phase, handle, node string) []diskapi.Entry {
	return s.View.Calls(diskapi.Filter{Call: call, Phase: phase, Volume: handle, Node: diskapi.NodeID(node)})
}

// last returns the newest of entries that are there.
func last(entries []diskapi.Entry) diskapi.Entry { return entries[len(entries)-1] }

// goesOn waits until the pod that has a volume at a node writes to it, and fails unless a pod
// at another node has written to it before, and all that was flushed there is found.
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

// lastFlushed is the last write that entries say has been flushed; 0: none.
func lastFlushed(entries []diskapi.Entry) uint64 {
	flushed := uint64(0)
	for _, e := range entries {
		if e.Write != nil {
			flushed = max(flushed, e.Write.Flushed)
		}
	}
	return flushed
}

// findsAll waits until a pod at a node begins to write to a volume after an entry of the journal, and
// fails unless it finds all earlier flushed writes, from any node.
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

// never fails unless a call for a volume and a node has never reached the disk
// service.
func (s *story) never(call diskapi.Call, handle, node string) {
	calls := s.calls(call, diskapi.Arrived, handle, node)
	s.expect(len(calls) == 0, fmt.Sprintf("there is no %s of the volume for %s", call, node), "there were %d", len(calls))
}

// detachBegins waits until the disk service is asked to detach.
func (s *story) detachBegins(handle, node string) {
	s.until("the detach from "+node+" begins", func() error {
		if len(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, handle, node)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
}

// detachedBefore fails unless, in the disk service's own log, the volume of an
// attach was detached from a node before that attach was asked for.
func (s *story) detachedBefore(attach diskapi.Entry, node string) {
	over := false
	for _, e := range s.calls(diskapi.ControllerUnpublish, diskapi.Returned, attach.Volume, node) {
		over = over || e.Done() && e.Seq < attach.Seq
	}
	s.expect(over, "the detach from "+node+" was over before the attach began", "it was not")
}

// breakCalls sets a fault of the disk service and returns how to end it.
func (s *story) breakCalls(fault diskapi.Fault) (mend func()) {
	set, err := s.Disk.SetFault(s.ctx, fault)
	s.must(err)
	return func() { s.must(s.Disk.ClearFault(s.ctx, set.ID)) }
}

// hangDetach holds all detaches of a volume until mended.
func (s *story) hangDetach(handle string) (mend func()) {
	return s.breakCalls(diskapi.Fault{
		Calls: []diskapi.Call{diskapi.ControllerUnpublish}, Volume: handle, Action: diskapi.Hang,
	})
}

// diskBusy is what the disk service says when a detach is made to fail.
const diskBusy = "the disk is busy"

// failDetach makes all detaches of a volume fail until mended.
func (s *story) failDetach(handle string) (mend func()) {
	return s.breakCalls(diskapi.Fault{
		Calls: []diskapi.Call{diskapi.ControllerUnpublish}, Volume: handle,
		Action: diskapi.Fail, Code: "Internal", Message: diskBusy,
	})
}
