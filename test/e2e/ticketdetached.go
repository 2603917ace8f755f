// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func ticketDetached() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "ticket-detached",
		Doc: "An expansion's ticket asks for a volume to be at no node: it waits for the pod that has it, and names it; when the pod has gone, and the driver has detached the volume, which it refuses at first, it is satisfied, " +
			"and the disk service has the disk at no machine. A new pod waits meanwhile, and is told for whom. When the ticket ends, the pod runs.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			s.placed("data", here)
			handle := s.handle("data")
			s.podAt(here, "db", "data")
			s.runs("db")
			s.ticket(&v1alpha1.VolumeTicket{
				ObjectMeta: metav1.ObjectMeta{Name: "grow"},
				Spec: v1alpha1.VolumeTicketSpec{
					Type: v1alpha1.TicketExpansion, Detached: true, TTLSeconds: new(int64(3600)),
					Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}},
				},
			})
			s.until("the ticket waits, and names the pod", func() error { return s.ticketSays("grow", "HeldElsewhere", "pod "+s.Namespace+"/db") })
			s.say("an expansion's ticket waits for db, which goes on running")
			mend := s.failDetach(handle)
			s.remove("db")
			s.gone("db")
			s.untilTicket("grow", "is told that the volume is not detached yet", func(t *v1alpha1.VolumeTicket) bool {
				c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied)
				return c != nil && c.Status == metav1.ConditionFalse && c.Reason == "DetachFailed"
			})
			mend()
			s.satisfied("grow")
			s.must(s.atNoMachine(handle))
			published := s.timesAttached(handle)
			hold, err := s.hold("data")
			s.must(err)
			h := hold.Status.Holder
			s.expect(h != nil && h.Node == "" && len(h.Requesters) == 1 && h.Requesters[0].Name == "grow", "the volume's hold names the ticket, and no node", "it says %+v", h)
			s.podAt(there, "db2", "data")
			s.until("db2 waits, and is told for whom", func() error {
				return unscheduled(s.View.Pod(s.Namespace, "db2"), "to stay detached for ticket "+s.Namespace+"/grow (Expansion)")
			})
			s.satisfied("grow")
			s.must(s.atNoMachine(handle))
			s.say("db2 waits for the ticket; the disk is at no machine")
			s.removeTicket("grow")
			s.runs("db2")
			s.expect(s.timesAttached(handle) == published+1, "the volume was attached once, when the ticket had ended", "the disk service was called otherwise")
		}),
	}
}

func (s *story) ticketSays(name, reason, text string) error {
	if err := s.ticketTells(name, reason); err != nil {
		return err
	}
	t, err := s.seenTicket(name)
	if err != nil {
		return err
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted); !strings.Contains(c.Message, text) {
		return fmt.Errorf("it says %s", c.Message)
	}
	return nil
}

// external-attacher may call again, without an effect, for a VolumeAttachment whose status it has not read
// back yet.
func (s *story) timesAttached(handle string) int {
	return len(s.View.Calls(diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Applied, Volume: handle}))
}

func (s *story) atNoMachine(handle string) error {
	disks, err := s.Disk.Disks(s.ctx)
	if err != nil {
		return err
	}
	for _, d := range disks {
		if d.Volume == handle && len(d.Attached) > 0 {
			return fmt.Errorf("the disk is attached: %+v", d.Attached)
		}
	}
	return nil
}
