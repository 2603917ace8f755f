// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func salvage() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "salvage",
		Doc: "The driver refuses to attach a volume: it is broken. An integrator that watches for that takes a Salvage ticket with detached: true and ends the pod that waits at its node; nothing of the volume is attached or tried while it is repaired. " +
			"The first integrator dies, and its ticket ends with its time; the second repairs the volume and ends its ticket, and the pod's successor runs.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const node = "worker-1"
			s.placed("data", node)
			handle := s.handle("data")
			mend := s.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.ControllerPublish}, Volume: handle, Action: diskapi.Fail, Code: codes.FailedPrecondition.String(), Message: "the volume is faulted"})
			s.podAt(node, "db", "data")
			s.until("the pod is told that the volume is broken", func() error {
				return told(s.View.Pod(s.Namespace, "db"), "AttachFailed", "the volume is faulted")
			})
			s.salvages("dies", 15)
			s.leavesEveryNode("data")
			s.say("the first integrator has the volume detached, and dies")
			s.noTicket("dies")
			s.toldOfEnd("VolumeTicket", "dies", "TimeOver")
			s.podAt(node, "again", "data")
			s.until("the volume is tried again", func() error {
				return told(s.View.Pod(s.Namespace, "again"), "AttachFailed", "the volume is faulted")
			})
			s.endsPod("again")
			s.salvages("repairs", 3600)
			s.leavesEveryNode("data")
			tried := len(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, node))
			s.podAt(node, "waits", "data")
			s.until("the pod waits for the repair", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "waits"), "ticket "+s.Namespace+"/repairs")
			})
			mend()
			again := len(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, node))
			s.expect(again == tried, "nobody attaches the volume while it is repaired", "%d attempts", again-tried)
			s.removeTicket("repairs")
			s.runs("waits")
			s.say("it is repaired, and the pod that waited runs")
		}),
	}
}

func (s *story) salvages(name string, ttl int64) {
	s.ticketWith(name, v1alpha1.TicketSalvage, "", "data", func(t *v1alpha1.VolumeTicket) {
		t.Spec.Wherever, t.Spec.Detached, t.Spec.TTLSeconds = false, true, &ttl
	})
	if s.View.Pod(s.Namespace, "db") != nil {
		s.endsPod("db")
	}
	s.satisfied(name)
}

func (s *story) endsPod(name string) {
	s.must(s.Client.CoreV1().Pods(s.Namespace).Delete(s.ctx, name, metav1.DeleteOptions{}))
	s.gone(name)
}
