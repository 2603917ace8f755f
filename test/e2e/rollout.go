// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// rollout guards the oldest pain (kubernetes#26567): the old pod holds the volume until the new pod is
// ready.
func rollout() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "rollout",
		Doc: "A Deployment with an RWO claim, maxSurge 1 and a soft spread constraint rolls out and completes, because the new pod goes where the volume is. " +
			"Upstream: the new pod is bound to another node and never runs.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream, sandbox.UpstreamTuned},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			s.claim("data")
			s.deployment(rollingDeployment())
			old := s.successor("the first pod runs", "web", s.isRunning)
			s.say("%s runs on %s; a new version rolls out", old.Name, old.Spec.NodeName)
			s.rollOut("web")
			if s.moorage() {
				s.rollsOutWithItsVolume(old)
			} else {
				s.neverRollsOut(old)
			}
		}),
	}
}

func rollingDeployment() *appsv1.Deployment {
	d := sandbox.Deployment("web", "data")
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge:       new(intstr.FromInt32(1)),
			MaxUnavailable: new(intstr.FromInt32(0)),
		},
	}
	d.Spec.ProgressDeadlineSeconds = new(int32(20))
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     d.Spec.Selector,
	}}
	return d
}

func (s *story) isRunning(pod *corev1.Pod) error { return s.Running(pod.Name) }

func (s *story) rollOut(name string) {
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	_, err := s.Client.AppsV1().Deployments(s.Namespace).Patch(s.ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		s.must(fmt.Errorf("roll out %s: %w", name, err))
	}
}

func (s *story) rollsOutWithItsVolume(old *corev1.Pod) {
	handle := s.handle("data")
	fresh := s.successor("the new pod runs beside its volume", "web", func(pod *corev1.Pod) error {
		if pod.Spec.NodeName != "" && pod.Spec.NodeName != old.Spec.NodeName {
			return sandbox.Never("the new pod %s is on %s and the volume on %s", pod.Name, pod.Spec.NodeName, old.Spec.NodeName)
		}
		return s.Running(pod.Name)
	}, old.UID)
	s.say("%s runs on %s, beside its volume", fresh.Name, fresh.Spec.NodeName)
	s.show("pods", "volumeholds")
	s.until("the rollout is complete", func() error {
		d := s.View.Deployment(s.Namespace, "web")
		if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != 1 || d.Status.Replicas != 1 || d.Status.AvailableReplicas != 1 {
			return fmt.Errorf("%d pods, %d of them new, %d available", d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas)
		}
		return s.PodGone(old.Name)
	})
	s.never(diskapi.ControllerUnpublish, handle, old.Spec.NodeName)
	s.say("the rollout is complete, and the volume never left %s", old.Spec.NodeName)
}

func (s *story) neverRollsOut(old *corev1.Pod) {
	handle := s.handle("data")
	fresh := s.successor("the new pod is bound to another node", "web", func(pod *corev1.Pod) error {
		switch pod.Spec.NodeName {
		case "":
			return errors.New("it is not bound yet")
		case old.Spec.NodeName:
			return sandbox.Never("the new pod %s is on the old one's node %s", pod.Name, old.Spec.NodeName)
		}
		return nil
	}, old.UID)
	s.say("%s is bound to %s, away from its volume", fresh.Name, fresh.Spec.NodeName)
	s.toldInEvent(fresh.Name, "FailedAttachVolume", "Volume is already used by pod(s) "+old.Name)
	s.show("pods", "volumeattachments")
	s.until("the Deployment gives the rollout up", func() error {
		for _, c := range s.View.Deployment(s.Namespace, "web").Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
				return nil
			}
		}
		return errors.New("it is still progressing")
	})
	s.never(diskapi.ControllerPublish, handle, fresh.Spec.NodeName)
	s.expect(s.Running(fresh.Name) != nil && s.Running(old.Name) == nil,
		"the old pod runs and the new one doesn't", "old: %v, new: %v", s.Running(old.Name), s.Running(fresh.Name))
	s.say("the Deployment has given up: ProgressDeadlineExceeded")
}
