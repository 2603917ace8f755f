// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func failingNodes(shape *sandbox.Shape) {
	threeByFour(shape)
	shape.NodeMonitorGracePeriod = 20 * time.Second
}

// nodeFailure guards the out-of-service taint: volumes are then detached without the kubelet's word.
func nodeFailure() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "node-failure",
		Doc: "A node is switched off: who waits for its volume is told why, and what would help. With the out-of-service taint the volume is elsewhere within seconds. " +
			"Upstream: with the taint the same, after the next round of pod garbage collection.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: failingNodes,
		Takes: 40 * time.Second,
		Run: tell(func(s *story) {
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			var before int64
			if s.moorage() {
				before = s.held("data", from)
			}
			s.say("%s, where %s runs, is switched off", from, old.Name)
			s.must(s.Cluster.PowerOff(s.ctx, from))
			replacement := s.replaced(old)
			s.toldOfDeadNode(from, replacement)
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.say("an administrator vouches for it: %s gets the out-of-service taint", from)
			s.taint(from, outOfService())
			s.runs(replacement.Name)
			to := replacement.Spec.NodeName
			s.goesOn(handle, from, to)
			s.say("%s runs on %s", replacement.Name, to)
			if s.moorage() {
				after := s.held("data", to)
				s.expect(after > before, "transitions rises", "it was %d and is %d", before, after)
				s.show("pods")
			}
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.untaint(from, outOfService())
		}),
	}
}

// With zero the replacement may be bound before the scheduler has seen the node's taint.
func evictedSoon(spec *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(3)),
		})
	}
}

func (s *story) evictable() *corev1.Pod {
	s.claim("data")
	d := sandbox.Deployment("web", "data")
	evictedSoon(&d.Spec.Template.Spec)
	s.deployment(d)
	return s.successor("the pod runs", "web", s.isRunning)
}

// A pod that was bound there before the taint is deleted by force, since it would use the volume there for
// good.
func (s *story) replaced(old *corev1.Pod) *corev1.Pod {
	from := old.Spec.NodeName
	s.nodeIs(from, false)
	replacement := s.successor("a pod that replaces it is bound to another node", old.Labels[sandbox.AppLabel], func(pod *corev1.Pod) error {
		return s.boundElsewhere(pod, from)
	}, old.UID)
	for _, pod := range s.PodsOf(sandbox.AppLabel, old.Labels[sandbox.AppLabel]) {
		if pod.UID != old.UID && pod.Spec.NodeName == from {
			s.must(s.forceDelete(s.ctx, pod.Name))
		}
	}
	s.say("%s is NotReady; %s is Terminating, for good; %s is bound to %s, and waits", from, old.Name, replacement.Name, replacement.Spec.NodeName)
	return replacement
}

func (s *story) untouched(old, replacement *corev1.Pod) {
	from, to, handle := old.Spec.NodeName, replacement.Spec.NodeName, s.handle("data")
	pod := s.View.Pod(s.Namespace, old.Name)
	s.expect(pod != nil && pod.UID == old.UID && pod.DeletionTimestamp != nil, "the old pod is still Terminating", "it is %v", pod)
	a := s.attachment("data", from)
	s.expect(a != nil && a.DeletionTimestamp == nil, "its VolumeAttachment is there and not being deleted", "it is %v", a)
	s.never(diskapi.ControllerUnpublish, handle, from)
	s.never(diskapi.ControllerPublish, handle, to)
	for _, e := range s.everyRequest() {
		if e.Object.Path() == "volumeattachments" && e.Object.Name == a.Name && e.Verb == "delete" {
			s.expect(false, "nobody has asked to delete the VolumeAttachment", "%s", e)
		}
	}
}
