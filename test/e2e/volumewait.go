// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// volumeWait guards that autoscalers add no nodes for pods that no new node would help.
func volumeWait() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "volume-wait",
		Doc: "Pods wait for two volumes at two nodes, and for a volume whose node is cordoned: neither is called Unschedulable, which is what autoscalers add nodes for. " +
			"Others wait for a ReadWriteOncePod volume in use, and for a claim that is missing: kube-scheduler's own reason and words say so. All are told what they wait for, and run once that comes.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			s.must(s.CreateClaim(s.ctx, sandbox.Claim("one", corev1.ReadWriteOncePod)))
			s.pod("first", "one")
			s.runs("first")
			s.pod("second", "one")
			s.pod("early", "late")
			s.stockSays("second", "ReadWriteOncePod access mode already in-use by another pod: volume one serves one pod at a time (ReadWriteOncePod) and is in use for pod "+s.Namespace+"/first")
			s.stockSays("early", `persistentvolumeclaim "late" not found`)
			s.say("second waits for first to go, early for its claim, as kube-scheduler itself says")
			s.claim("late")
			at := s.runs("early").Spec.NodeName
			s.remove("first")
			s.runs("second")
			s.claim("here")
			s.claim("there")
			s.podAt("worker-1", "left", "here")
			s.podAt("worker-2", "right", "there")
			s.runs("left")
			s.runs("right")
			s.must(s.CreatePod(s.ctx, sandbox.Pod("both", "here", "there")))
			s.gated("both", "worker-1 holds it for pod "+s.Namespace+"/left")
			s.say("both waits for two volumes at two nodes; no autoscaler looks at it")
			s.remove("left")
			s.runs("both")
			s.cordon(at)
			s.takesNoPods(at)
			s.pod("third", "late")
			words := fmt.Sprintf("2 node(s) can't take volume late: %s holds it for pod %s/early", at, s.Namespace)
			s.waitsForVolume("third", words)
			s.toldInEvent("third", "FailedScheduling", words)
			s.until("the volume status of third says so, too", func() error {
				return told(s.View.Pod(s.Namespace, "third"), "HeldElsewhere", words)
			})
			s.say("third may go to %s only, which is cordoned, and is told so", at)
			s.uncordon(at)
			third := s.runs("third")
			s.expect(third.Spec.NodeName == at, "third runs where its volume is", "it runs at %s, and the volume is at %s", third.Spec.NodeName, at)
		}),
	}
}

func (s *story) takesNoPods(node string) {
	pod := sandbox.Pod("probe")
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	s.must(s.CreatePod(s.ctx, pod))
	s.stockSays(pod.Name, "1 node(s) were unschedulable")
}

// cluster-autoscaler and Karpenter look for the reason Unschedulable, so that the wait needs another
// reason.
func (s *story) waitsForVolume(name, text string) {
	s.until(fmt.Sprintf("pod %s is told %s: %s", name, v1alpha1.ReasonVolumeWait, text), func() error {
		pod := s.View.Pod(s.Namespace, name)
		if err := unscheduled(pod, text); err != nil {
			return err
		}
		if c := condition(pod, corev1.PodScheduled); c.Reason != v1alpha1.ReasonVolumeWait {
			return fmt.Errorf("the reason is %s", c.Reason)
		}
		return nil
	})
}

func (s *story) stockSays(name, text string) {
	s.until(fmt.Sprintf("pod %s is told %s: %s", name, corev1.PodReasonUnschedulable, text), func() error {
		pod := s.View.Pod(s.Namespace, name)
		if err := unscheduled(pod, text); err != nil {
			return err
		}
		if c := condition(pod, corev1.PodScheduled); c.Reason != corev1.PodReasonUnschedulable {
			return fmt.Errorf("the reason is %s", c.Reason)
		}
		return nil
	})
	s.toldInEvent(name, "FailedScheduling", text)
}

func (s *story) gated(name, text string) {
	s.waitsForVolume(name, text)
	s.toldInEvent(name, v1alpha1.ReasonVolumeWait, text)
	tried := s.Event("Pod", name, "FailedScheduling", "")
	s.expect(tried == nil, "the scheduler has not tried "+name, "its event says %v", tried)
}
