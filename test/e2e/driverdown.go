// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// driverDown guards that proof of a machine's death does not replace the driver's detach.
func driverDown() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "driver-down",
		Doc: "The driver's attacher is killed, and then a node is switched off and gets the out-of-service taint. Once there is an attacher, detaches fail, and then one is carried out and not answered. " +
			"Nothing is attached elsewhere before the driver has said that it has detached the volume, whoever leads.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   failingNodes,
		Takes:   time.Minute,
		Timeout: 5 * time.Minute,
		Run: tell(func(s *story) {
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			s.say("the driver's attacher is killed, and %s, where %s runs, is switched off", from, old.Name)
			s.must(s.Cluster.Kill(s.ctx, sandbox.Attacher))
			s.must(s.Cluster.PowerOff(s.ctx, from))
			replacement := s.replaced(old)
			to := replacement.Spec.NodeName
			s.taint(from, outOfService())
			s.until("the detach is asked for", func() error { return s.asksDetach("data", from) })
			s.newLeader()
			s.until("the hold says by which rule", func() error { return s.heldFence(from, v1alpha1.ForceDetachOutOfService) })
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.never(diskapi.ControllerPublish, handle, to)
			s.say("%s has the out-of-service taint: the detach is asked for, and nobody carries it out", from)

			detaching := []diskapi.Call{diskapi.ControllerUnpublish}
			s.breakCalls(diskapi.Fault{Calls: detaching, Volume: handle, Action: diskapi.Fail, Code: "Unavailable", Message: diskBusy, Times: 2})
			s.breakCalls(diskapi.Fault{Calls: detaching, Volume: handle, Action: diskapi.FailAfter, Code: "DeadlineExceeded", Message: "no answer", Times: 1})
			mend := s.failDetach(handle)
			s.must(s.Cluster.StartAgain(sandbox.Attacher))
			s.until("the detach has failed four times", func() error { return s.detachFailed(handle, from, 4) })
			s.bystander(to)
			s.never(diskapi.ControllerPublish, handle, to)
			s.say("the driver is back, and fails: one detach was carried out, and it did not say so. A pod that came later runs")
			mend()
			s.runs(replacement.Name)
			s.detachedBefore(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, to)[0], from)
			s.goesOn(handle, from, to)
			s.say("it has said that it has detached the volume: %s runs on %s", replacement.Name, to)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.untaint(from, outOfService())
		}),
	}
}

func (s *story) asksDetach(claim, node string) error {
	if va := s.attachment(claim, node); va == nil || va.DeletionTimestamp == nil {
		return fmt.Errorf("its VolumeAttachment is %v", va)
	}
	return nil
}

func (s *story) detachFailed(handle, node string, times int) error {
	failed := 0
	for _, e := range s.calls(diskapi.ControllerUnpublish, diskapi.Returned, handle, node) {
		if e.Done() {
			return errors.New("one has succeeded")
		}
		failed++
	}
	if failed < times {
		return fmt.Errorf("%d times", failed)
	}
	return nil
}
