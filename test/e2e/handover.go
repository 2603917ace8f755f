// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// handover guards I1. The detach is held until a later pod's volume is attached: the controller had the
// chance to attach too soon.
func handover() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "handover",
		Doc: "A StatefulSet's pod moves to another node: the old node's detach is over before the attach begins; transitions rises by one. " +
			"Upstream: the same, without a number.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			s.statefulSet("db")
			first := s.runs("db-0")
			from, handle := first.Spec.NodeName, s.handle(dataOf("db-0"))
			var before int64
			if s.moorage() {
				before = s.held(dataOf("db-0"), from)
			}
			s.say("db-0 runs on %s; it is cordoned, and the pod is evicted", from)
			mend := s.hangDetach(handle)
			s.cordon(from)
			s.remove("db-0")
			second := s.boundAgain("db-0", first)
			to := second.Spec.NodeName
			s.detachBegins(handle, from)
			s.say("db-0 is bound to %s; %s has not let go of its volume yet", to, from)
			if s.moorage() {
				s.show("pods")
			}
			s.bystander(to)
			s.never(diskapi.ControllerPublish, handle, to)
			s.say("a pod that came later runs on %s, and db-0 still waits; now %s lets go", to, from)
			mend()
			s.runs("db-0")
			s.detachedBefore(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, to)[0], from)
			if s.moorage() {
				after := s.held(dataOf("db-0"), to)
				s.expect(after > before, "transitions rises", "it was %d and is %d", before, after)
				s.say("db-0 runs on %s; transitions went from %d to %d", to, before, after)
			}
			s.uncordon(from)
		}),
	}
}

func dataOf(pod string) string { return "data-" + pod }

func (s *story) boundAgain(name string, before *corev1.Pod) *corev1.Pod {
	var pod *corev1.Pod
	s.until("another pod "+name+" is bound", func() error {
		pod = s.View.Pod(s.Namespace, name)
		switch {
		case pod == nil || pod.UID == before.UID:
			return errors.New("there is none yet")
		case pod.Spec.NodeName == "":
			return errors.New("it has no node")
		}
		return nil
	})
	return pod
}
