// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const powerOffs = 3

const unreachableFor = time.Minute

// Nodes are not Ready after the default 50 s; the pod tolerates that for 3 s. Evidence of others is given
// at once.
func PowerOffTimes() sandbox.Scenario {
	return sandbox.Scenario{
		Name:    "power-off-times",
		Doc:     "How long after its machine was switched off a pod runs elsewhere, by what is known of the machine.",
		Modes:   []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Extra:   true,
		Timeout: 30 * time.Minute,
		Shape:   func(shape *sandbox.Shape) { threeByFour(shape); shape.NetworkFences = shape.Mode == sandbox.Standalone },
		Run: tell(func(s *story) {
			pod := s.evictable()
			pod = s.powerOffs(s.tainting("taint out-of-service", outOfService()), pod)
			if s.Mode != sandbox.Standalone {
				return
			}
			unpublishes := v1alpha1.AttachPolicySpec{UnpublishFences: new(true)}
			pod = s.powerOffsBy(unpublishes, s.tainting("taint of a cloud, unpublishFences", corev1.Taint{
				Key: "node.cloudprovider.kubernetes.io/shutdown", Effect: corev1.TaintEffectNoSchedule,
			}), pod)
			pod = s.powerOffsBy(v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{FencedCondition: new(fencedByScript)}},
				evidence{"fencedCondition", s.vouch, func(string) {}}, pod)
			s.fencedBy(0)
			pod = s.powerOffs(evidence{"networkFence", func(string) {}, s.letIn}, pod)
			s.unfencedBy()
			unpublishes.ForceDetach = &v1alpha1.ForceDetachPolicy{AfterUnreachable: &metav1.Duration{Duration: unreachableFor}}
			s.powerOffsBy(unpublishes, evidence{"afterUnreachable 1m, unpublishFences", func(string) {}, func(string) {}}, pod)
			s.leaves()
		}),
	}
}

// The kubelet of a machine that is back may be silent about volumes in use for five minutes
// (nodeStatusReportFrequency), longer than the sandbox waits for leftovers.
func (s *story) leaves() {
	s.must(s.Client.AppsV1().Deployments(s.Namespace).Delete(s.ctx, "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
	s.must(s.EventuallyWithin(s.ctx, 7*time.Minute, "the volume is attached nowhere", func() error {
		if n := len(s.View.Attachments()); n > 0 {
			return fmt.Errorf("there are %d VolumeAttachments", n)
		}
		return nil
	}))
}

type evidence struct {
	name       string
	says, ends func(node string)
}

func (s *story) tainting(name string, taint corev1.Taint) evidence {
	return evidence{name, func(node string) { s.taint(node, taint) }, func(node string) { s.untaint(node, taint) }}
}

func (s *story) powerOffsBy(spec v1alpha1.AttachPolicySpec, known evidence, pod *corev1.Pod) *corev1.Pod {
	s.policy("measured", spec)
	pod = s.powerOffs(known, pod)
	s.noPolicy("measured")
	return pod
}

func (s *story) powerOffs(known evidence, pod *corev1.Pod) *corev1.Pod {
	var took []time.Duration
	for range powerOffs {
		from, began := pod.Spec.NodeName, time.Now()
		s.must(s.Cluster.PowerOff(s.ctx, from))
		s.nodeIs(from, false)
		known.says(from)
		next := s.successor("a pod that replaces it runs elsewhere", "web", func(p *corev1.Pod) error {
			return errors.Join(s.boundElsewhere(p, from), s.Running(p.Name))
		}, pod.UID)
		took = append(took, time.Since(began))
		s.say("%s: %s runs on %s %.1f s after %s was switched off", known.name, next.Name, next.Spec.NodeName, took[len(took)-1].Seconds(), from)
		s.must(s.Cluster.PowerOn(s.ctx, from))
		s.nodeIs(from, true)
		known.ends(from)
		s.gone(pod.Name)
		pod = next
	}
	s.countTimes(known.name, took)
	return pod
}
