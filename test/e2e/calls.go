// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// calls lists what a node was asked to do with a volume, in the disk service's
// own order.
func (s *story) calls(call diskapi.Call, phase diskapi.Phase, handle, node string) []diskapi.Entry {
	return s.View.Calls(diskapi.Filter{Call: call, Phase: phase, Volume: handle, Node: diskapi.NodeID(node)})
}

// last returns the newest of entries that are there.
func last(entries []diskapi.Entry) diskapi.Entry { return entries[len(entries)-1] }

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
