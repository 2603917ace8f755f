// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// ticketOrder guards that one order decides among tickets and pods that wait for a volume.
func ticketOrder() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "ticket-order",
		Doc: "A backup's ticket, a pod and a restore's ticket wait for one volume at three nodes, in this order of age. When the volume comes free, the restore has it first, then the pod, and the backup last. " +
			"A second pod, which fits only a node without that volume, has the backup asked to let go, and runs.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const first, second, third = "worker-3", "worker-2", "worker-1"
			s.placed("data", first)
			handle := s.handle("data")
			before := s.timesAttached(handle)
			s.ticket(&v1alpha1.VolumeTicket{
				ObjectMeta: metav1.ObjectMeta{Name: "hold"},
				Spec: v1alpha1.VolumeTicketSpec{
					Type: v1alpha1.TicketManual, Detached: true, TTLSeconds: new(int64(3600)),
					Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}},
				},
			})
			s.satisfied("hold")
			s.ticketOfType("backup", v1alpha1.TicketBackup, third, "data")
			s.waits("backup")
			s.anotherSecond()
			s.podAt(second, "db", "data")
			s.until("db waits, and is told for whom", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "db"), "ticket "+s.Namespace+"/hold")
			})
			s.anotherSecond()
			s.ticketOfType("restore", v1alpha1.TicketRestore, first, "data")
			s.waits("restore")
			s.say("a backup, a pod and a restore wait for the volume")
			s.removeTicket("hold")
			s.satisfied("restore")
			s.waits("backup")
			s.removeTicket("restore")
			s.runs("db")
			s.waits("backup")
			s.remove("db")
			s.gone("db")
			s.satisfied("backup")
			var order []string
			for _, e := range s.View.Calls(diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Applied, Volume: handle})[before:] {
				order = append(order, e.Node)
			}
			want := []string{diskapi.NodeID(first), diskapi.NodeID(second), diskapi.NodeID(third)}
			s.expect(fmt.Sprint(order) == fmt.Sprint(want), "the restore has the volume first, then the pod, then the backup", "it was attached to %v", order)
			s.say("the restore had it first, then the pod, then the backup")
			s.podAt(second, "db2", "data")
			s.letGo("backup", s.yields("backup"))
			s.runs("db2")
			s.waits("backup")
			s.say("the backup was asked to let go for a pod without a node, and the pod runs")
			s.removeTicket("backup")
		}),
	}
}

// The API server writes whole seconds.
func (s *story) anotherSecond() {
	made := time.Now().Unix()
	s.until("the clock shows another second", func() error {
		if time.Now().Unix() == made {
			return errors.New("it shows the same second")
		}
		return nil
	})
}

func (s *story) waits(name string) {
	s.untilTicket(name, "waits", func(t *v1alpha1.VolumeTicket) bool {
		c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted)
		return c != nil && c.Status == metav1.ConditionUnknown
	})
}
