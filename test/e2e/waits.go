// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func (s *story) runs(name string) *corev1.Pod {
	s.until("pod "+name+" runs", func() error { return s.Running(name) })
	return s.View.Pod(s.Namespace, name)
}

func (s *story) allRun(what string, names ...string) {
	s.until(what, func() error {
		var errs []error
		for _, name := range names {
			errs = append(errs, s.Running(name))
		}
		return errors.Join(errs...)
	})
}

func (s *story) gone(name string) {
	s.until("pod "+name+" is gone", func() error { return s.PodGone(name) })
}

func (s *story) successor(what, app string, check func(*corev1.Pod) error, before ...types.UID) *corev1.Pod {
	var found *corev1.Pod
	s.until(what, func() error {
		for _, pod := range s.PodsOf(sandbox.AppLabel, app) {
			if !slices.Contains(before, pod.UID) && pod.DeletionTimestamp == nil {
				found = pod
				return check(pod)
			}
		}
		return errors.New("there is no such pod yet")
	})
	return found
}

// A bystander's volume shows that the attaching controller has worked since.
func (s *story) bystander(node string) { s.bystanderNamed("bystander", node) }

func (s *story) bystanderNamed(name, node string) {
	claim := "data-of-" + name
	s.claim(claim)
	s.podAt(node, name, claim)
	s.runs(name)
}

// The second bystander is another leader's work.
func (s *story) bystanders(node string) {
	s.bystander(node)
	s.newLeader()
	s.bystanderNamed("later", node)
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	if pod == nil {
		return nil
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func unscheduled(pod *corev1.Pod, text string) error {
	c := condition(pod, corev1.PodScheduled)
	switch {
	case c == nil || c.Status != corev1.ConditionFalse:
		return errors.New("nothing is said of its scheduling")
	case !strings.Contains(c.Message, text):
		return fmt.Errorf("PodScheduled says %s: %s", c.Reason, c.Message)
	}
	return nil
}

func (s *story) nodeIs(name string, ready bool) {
	what := map[bool]string{true: " is Ready", false: " is not Ready"}[ready]
	s.until(name+what, func() error {
		if node := s.View.Node(name); node == nil || sandbox.IsReady(node) != ready {
			return errors.New("not yet")
		}
		return nil
	})
}

func (s *story) handle(claim string) string {
	handle, err := s.Handle(claim)
	s.must(err)
	return handle
}

func (s *story) attachment(claim, node string) *storagev1.VolumeAttachment {
	c := s.View.Claim(s.Namespace, claim)
	if c == nil {
		return nil
	}
	for _, a := range s.View.Attachments() {
		if pv := a.Spec.Source.PersistentVolumeName; pv != nil && *pv == c.Spec.VolumeName && a.Spec.NodeName == node {
			return a
		}
	}
	return nil
}

func (s *story) toldInEvent(pod, reason, text string) {
	s.until(fmt.Sprintf("pod %s is told %s: %s", pod, reason, text), func() error {
		if s.Event("Pod", pod, reason, text) == nil {
			return errors.New("there is no such event yet")
		}
		return nil
	})
}
