// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const readdNode = "worker-1"

// readd guards the bug that upstream fixed twice (kubernetes#72914, kubernetes#88572): a detach fails while
// the pod comes back, and the volume is never put back into volumesAttached.
func readd() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "readd",
		Doc:   "A pod comes back to its node while the detach fails and backs off: it is told why it waits, and runs once a detach succeeds and the volume is attached again.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			mend := s.detachFails()
			s.podAt(readdNode, "db", "data")
			s.toldOfFailure()
			s.say("detaches work again")
			mend()
			s.attachedAgain()
		}),
	}
}

func readdKilled() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "readd-killed",
		Doc:   "As readd, with the controller killed between the failing detach and the pod's return.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			mend := s.detachFails()
			s.say("the controller is killed, and the pod comes back without it")
			s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageController))
			s.podAt(readdNode, "db", "data")
			s.must(s.Cluster.StartAgain(sandbox.MoorageController))
			s.toldOfFailure()
			s.say("detaches work again")
			mend()
			s.attachedAgain()
		}),
	}
}

func readdHalf() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "readd-half",
		Doc:   "A pod comes back to its node again and again while half of the detaches fail: it runs each time.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const rounds = 4
			s.claim("data")
			s.podAt(readdNode, "db", "data")
			s.runs("db")
			handle := s.handle("data")
			for round := range rounds {
				s.breakCalls(diskapi.Fault{
					Calls: []diskapi.Call{diskapi.ControllerUnpublish}, Volume: handle,
					Action: diskapi.Fail, Code: "Internal", Message: diskBusy, Times: 1,
				})
				s.remove("db")
				s.gone("db")
				s.detachAsked(handle)
				s.podAt(readdNode, "db", "data")
				s.runs("db")
				s.say("round %d: db runs again", round+1)
			}
			calls := len(s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, handle, readdNode))
			failed := len(s.View.Calls(diskapi.Filter{Call: diskapi.ControllerUnpublish, Volume: handle, Outcome: diskapi.Failed}))
			s.expect(failed == rounds && calls >= 2*rounds, "half of the detaches fail", "%d of %d did", failed, calls)
		}),
	}
}

func (s *story) detachAsked(handle string) {
	s.until("the detach begins", func() error {
		detaches := s.calls(diskapi.ControllerUnpublish, diskapi.Arrived, handle, readdNode)
		attaches := s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, readdNode)
		if len(detaches) == 0 || last(detaches).Seq < last(attaches).Seq {
			return errors.New("it was not asked for since the last attach")
		}
		return nil
	})
}

func (s *story) detachFails() (mend func()) {
	s.claim("data")
	s.podAt(readdNode, "db", "data")
	s.runs("db")
	mend = s.failDetach(s.handle("data"))
	s.remove("db")
	s.gone("db")
	s.until("the detach fails", func() error {
		a := s.attachment("data", readdNode)
		switch {
		case a == nil:
			return sandbox.Never("the VolumeAttachment is gone")
		case a.DeletionTimestamp == nil || a.Status.DetachError == nil:
			return errors.New("not yet")
		}
		return nil
	})
	s.say("db is gone; its volume's detach fails (%s), and db comes back to %s", diskBusy, readdNode)
	return mend
}

func (s *story) toldOfFailure() {
	texts := []string{"detaching volume data from " + readdNode + " failed and will be tried again", diskBusy}
	s.until("the pod is told that the detach fails", func() error {
		return told(s.View.Pod(s.Namespace, "db"), "DetachFailed", texts...)
	})
	s.until("the VolumeHold says that the detach fails", func() error {
		hold, err := s.hold("data")
		if err != nil {
			return err
		}
		return holdTells(hold, v1alpha1.HoldDetachPending, metav1.ConditionTrue, "DetachFailed", texts...)
	})
	s.sayTold("db")
	s.expect(!s.ReportedAttached(readdNode, s.handle("data")), "a volume that is being detached is not in volumesAttached", "it is")
	s.show("pods", "volumeholds")
}

func (s *story) attachedAgain() {
	s.runs("db")
	handle := s.handle("data")
	s.expect(s.ReportedAttached(readdNode, handle), "the volume is in volumesAttached", "it is not")
	s.detachedBefore(last(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, readdNode)), readdNode)
	s.say("db runs")
}

func readdStays() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "readd-stays",
		Doc:   "A pod comes back to its node while the detach fails, with moorage-attacher: the volume stays, and the pod runs though no detach has succeeded.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.MoorageAttacher = true
		},
		Run: tell(func(s *story) {
			mend := s.detachFails()
			s.podAt(readdNode, "db", "data")
			s.runs("db")
			handle := s.handle("data")
			over := 0
			for _, e := range s.calls(diskapi.ControllerUnpublish, diskapi.Returned, handle, readdNode) {
				if e.Done() {
					over++
				}
			}
			s.expect(over == 0, "no detach has succeeded", "%d have", over)
			s.expect(s.ReportedAttached(readdNode, handle), "the volume is in volumesAttached", "it is not")
			s.say("db runs, and its volume never left %s", readdNode)
			s.until("the VolumeHold says Held again", func() error { return s.justHeld("data") })
			mend()
		}),
	}
}
