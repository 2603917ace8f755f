// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// A driver that reports a full node is believed, regardless of CSINode.
func noRoom() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "no-room",
		Doc: "The driver answers an attach at one node with ResourceExhausted, though its CSINode has free slots: the pod there is told so, " +
			"and one that would rather be there runs at another node.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const full = "worker-1"
			s.placed("stuck", full)
			mend := s.breakCalls(diskapi.Fault{
				Calls: []diskapi.Call{diskapi.ControllerPublish}, Node: diskapi.NodeID(full),
				Action: diskapi.Fail, Code: codes.ResourceExhausted.String(), Message: "no room",
			})
			// It is bound from the start: else its binding would depend on how soon the driver answers.
			stuck := sandbox.Pod("stuck", "stuck")
			stuck.Spec.NodeName = full
			s.must(s.CreatePod(s.ctx, stuck))
			s.until("the pod is told that the driver has no room", func() error {
				return told(s.View.Pod(s.Namespace, "stuck"), "AttachFailed", full, "no room")
			})
			s.claim("data")
			s.podRatherAt(full, "db", "data")
			pod := s.runs("db")
			s.expect(pod.Spec.NodeName != full, "the pod is at another node", "it runs on %s", pod.Spec.NodeName)
			s.say("the driver had no room at %s; db runs on %s", full, pod.Spec.NodeName)
			mend()
			s.runs("stuck")
		}),
	}
}

func (s *story) podRatherAt(node, name, claim string) {
	pod := sandbox.Pod(name, claim)
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}},
		}},
	}}
	s.must(s.CreatePod(s.ctx, pod))
}
