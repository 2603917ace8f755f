// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// fullNode guards that a volume's own attachment is never counted against it. Held detaches keep the
// attachment.
func fullNode() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "full-node",
		Doc: "A pod with the same claim comes back to a full node at once. " +
			"Upstream: refused until its own detach is over, because its attachment is counted twice.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const node, slots = "worker-1", 4
			var pods []string
			for i := range slots {
				name := fmt.Sprintf("p%d", i+1)
				s.claim(name)
				s.podAt(node, name, name)
				pods = append(pods, name)
			}
			s.allRun("every slot of "+node+" is taken", pods...)
			attachment := s.attachment("p1", node)
			s.expect(attachment != nil, "p1's volume has a VolumeAttachment", "it has none")
			s.say("%s is full: %d of %d slots are taken; p1 goes, and comes back", node, slots, slots)
			mend := s.hangDetach(s.handle("p1"))
			s.remove("p1")
			s.gone("p1")
			s.podAt(node, "p1-again", "p1")
			if s.moorage() {
				s.boundOnto("p1-again", attachment.UID)
			} else {
				s.refusedFor("p1-again", attachment.UID)
			}
			mend()
			s.runs("p1-again")
			s.say("p1-again runs on %s", node)
		}),
	}
}

func (s *story) boundOnto(name string, attachment types.UID) {
	s.until("the pod is bound to the full node while its volume is there", func() error {
		switch pod := s.View.Pod(s.Namespace, name); {
		case !s.exists(attachment):
			return sandbox.Never("its attachment is gone")
		case pod == nil || pod.Spec.NodeName == "":
			if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
				return sandbox.Never("it is refused: %s", c.Message)
			}
			return errors.New("it is not bound yet")
		}
		return nil
	})
	s.say("it is bound at once, onto its own attachment")
}

func (s *story) refusedFor(name string, attachment types.UID) {
	s.until("the pod is refused by its own attachment", func() error {
		pod := s.View.Pod(s.Namespace, name)
		switch {
		case pod != nil && pod.Spec.NodeName != "":
			return sandbox.Never("it is bound")
		case !s.exists(attachment):
			return sandbox.Never("its attachment is gone")
		}
		return unscheduled(pod, "exceed max volume count")
	})
	s.toldInEvent(name, "FailedScheduling", "exceed max volume count")
	s.expect(s.exists(attachment), "its attachment is still there", "it is gone")
	s.say("it is refused: its own attachment is counted against it")
}

func (s *story) exists(uid types.UID) bool {
	for _, a := range s.View.Attachments() {
		if a.UID == uid {
			return true
		}
	}
	return false
}
