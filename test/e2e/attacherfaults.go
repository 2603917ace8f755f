// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Every code is answered once, also after the work was done. ResourceExhausted is left out: it means a full
// node.
func attacherFaults() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "attacher-faults",
		Doc: "With moorage-attacher, the driver answers attaches and detaches with every code, some after it did what it was asked, hangs, and is killed: " +
			"every pod runs, and every volume is detached.",
		Modes:     []sandbox.Mode{sandbox.Standalone},
		Exclusive: true,
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.Slots, shape.MoorageAttacher = 8, true
		},
		Run: tell(func(s *story) {
			mend := s.everyCode(diskapi.ControllerPublish)
			var names []string
			for i := range len(faultCodes()) + 1 {
				name := fmt.Sprintf("p%02d", i+1)
				s.claim(name)
				s.pod(name, name)
				names = append(names, name)
			}
			s.spent(diskapi.ControllerPublish)
			s.restartDriver()
			mend()
			s.allRun("every pod runs", names...)
			s.say("every pod runs; now they go")
			mend = s.everyCode(diskapi.ControllerUnpublish)
			for _, name := range names {
				s.remove(name)
			}
			s.spent(diskapi.ControllerUnpublish)
			s.restartDriver()
			mend()
			s.until("every volume is detached", func() error {
				if n := len(s.View.Attachments()); n > 0 {
					return fmt.Errorf("%d VolumeAttachments are left", n)
				}
				return nil
			})
		}),
	}
}

func faultCodes() []codes.Code {
	return []codes.Code{
		codes.Canceled, codes.Unknown, codes.InvalidArgument, codes.DeadlineExceeded, codes.NotFound, codes.AlreadyExists,
		codes.PermissionDenied, codes.FailedPrecondition, codes.Aborted, codes.OutOfRange, codes.Unimplemented,
		codes.Internal, codes.Unavailable, codes.DataLoss, codes.Unauthenticated,
	}
}

func (s *story) everyCode(call diskapi.Call) (mend func()) {
	for _, code := range faultCodes() {
		fault := diskapi.Fault{Calls: []diskapi.Call{call}, Action: diskapi.Fail, Code: code.String(), Message: diskBusy, Times: 1}
		if diskapi.Ambiguous(code.String()) {
			fault.Action = diskapi.FailAfter
		}
		s.breakCalls(fault)
	}
	return s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{call}, Action: diskapi.Hang, Times: 1})
}

func (s *story) spent(call diskapi.Call) {
	s.until("calls have failed with every code", func() error {
		for _, code := range faultCodes() {
			if len(s.View.Calls(diskapi.Filter{Call: call, Outcome: diskapi.Failed, Code: code.String()})) == 0 {
				return fmt.Errorf("none with %s", code)
			}
		}
		return nil
	})
}

func (s *story) restartDriver() {
	s.must(s.Cluster.Kill(s.ctx, sandbox.DiskService))
	s.must(s.Cluster.StartAgain(sandbox.DiskService))
	s.until("the driver is back", func() error { return s.Disk.Healthy(s.ctx) })
}
