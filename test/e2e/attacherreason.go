// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func attacherReason() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "attacher-reason",
		Doc: "With moorage-attacher, the driver refuses an attach: its words and its code are on the VolumeAttachment (an API server of 1.34 drops the code), " +
			"its words on the VolumeHold, on the ticket, and on the pod in its status and an event. Once it attaches, the pod runs and the hold says nothing of it any more.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.MoorageAttacher = true
		},
		Run: tell(func(s *story) {
			const node = "worker-1"
			s.placed("data", node)
			mend := s.breakCalls(diskapi.Fault{
				Calls: []diskapi.Call{diskapi.ControllerPublish}, Volume: s.handle("data"),
				Action: diskapi.Fail, Code: codes.PermissionDenied.String(), Message: diskBusy,
			})
			s.manualTicket("keep", node, "data")
			s.podAt(node, "db", "data")
			words := fmt.Sprintf("rpc error: code = %s desc = %s", codes.PermissionDenied, diskBusy)
			code := codes.OK // none
			if s.keepsErrorCodes() {
				code = codes.PermissionDenied
			}
			s.until("the VolumeAttachment has the driver's words and code", func() error { return s.attachError("data", node, code, words) })
			s.until("the hold has the driver's words", func() error { return s.holdRefused("data", words) })
			s.until("the ticket has the driver's words", func() error { return s.unsatisfied("keep", "AttachFailed", words) })
			s.until("the pod has the driver's words", func() error { return told(s.View.Pod(s.Namespace, "db"), "AttachFailed", words) })
			s.toldInEvent("db", "FailedAttachVolume", words)
			s.sayTold("db")
			mend()
			s.runs("db")
			s.until("the hold says nothing of it any more", func() error { return s.justHeld("data") })
			s.removeTicket("keep")
		}),
	}
}

func (s *story) attachError(claim, node string, code codes.Code, words string) error {
	a := s.attachment(claim, node)
	if a == nil || a.Status.AttachError == nil {
		return fmt.Errorf("it has no error: %v", a)
	}
	e := a.Status.AttachError
	if e.Message != words || codes.Code(ptr.Deref(e.ErrorCode, 0)) != code {
		return fmt.Errorf("it has %v", e)
	}
	return nil
}

func (s *story) unsatisfied(name, reason, words string) error {
	t, err := s.seenTicket(name)
	if err != nil {
		return err
	}
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason || !strings.Contains(c.Message, words) {
		return fmt.Errorf("it says %+v", c)
	}
	return nil
}

func (s *story) holdRefused(claim, words string) error {
	hold, err := s.hold(claim)
	if err != nil {
		return err
	}
	if sum := hold.Status.Summary; sum == nil || sum.State != v1alpha1.HoldStateAttachFailed {
		return fmt.Errorf("its state is %+v", sum)
	}
	return holdTells(hold, v1alpha1.HoldAttached, metav1.ConditionFalse, "AttachFailed", words)
}

func (s *story) justHeld(claim string) error {
	hold, err := s.hold(claim)
	if err != nil {
		return err
	}
	if sum := hold.Status.Summary; sum == nil || sum.State != v1alpha1.HoldStateHeld || len(hold.Status.Conditions) > 0 {
		return fmt.Errorf("it says %+v and %+v", sum, hold.Status.Conditions)
	}
	return nil
}
