// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// path guards I4 and I5 (docs/internals/invariants.md).
func path() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "path",
		Doc:   "A pod with a volume goes from creation to Running to deletion, through every stage and in their order.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			s.claim("data")
			s.pod("db", "data")
			pod := s.runs("db")
			s.say("db runs on %s", pod.Spec.NodeName)
			if s.moorage() {
				s.held("data", pod.Spec.NodeName)
				s.safeToMount("db")
				s.boundInOneWrite()
				s.attachedBeforeReported()
			}
			s.remove("db")
			s.gone("db")
			s.everyStage()
			switch s.Mode {
			case sandbox.Standalone:
				s.unreportedBeforeDetached()
			case sandbox.Cooperative:
				s.keepsOutOfNodeStatus()
			}
		}),
	}
}

func (s *story) safeToMount(name string) {
	s.until("pod "+name+" is told that its volume is safe to mount", func() error {
		pod := s.View.Pod(s.Namespace, name)
		status, err := volumeStatus(pod)
		if err != nil {
			return err
		}
		c := condition(pod, v1alpha1.PodSafeToMount)
		switch {
		case !status.SafeToMount:
			return fmt.Errorf("the volume status says %s: %s", status.Reason, status.Message)
		case status.Node != pod.Spec.NodeName:
			return fmt.Errorf("the volume status names node %q", status.Node)
		case c == nil || c.Status != corev1.ConditionTrue:
			return errors.New("its condition is not True")
		}
		return nil
	})
}

func (s *story) boundInOneWrite() {
	once(schedulerUser, "pods/binding", "create").were(s)
	for _, e := range s.everyRequest() {
		if e.Object.Resource == "volumetickets" && e.Verb == "create" {
			s.expect(false, "no pod has a ticket", "%s", e)
		}
	}
}

func (s *story) attachedBeforeReported() {
	attached := once(attacherUser, "volumeattachments/status", "patch", "update").were(s)[0]
	writer := controllerUser
	if s.Mode == sandbox.Cooperative {
		writer = attachDetachUser
	}
	s.causes("the volume is attached before it is reported", attached, once(writer, "nodes/status", "patch").were(s)[0])
}

// The VolumeAttachment is deleted after the volume left volumesAttached, and after a look at the node's
// pods.
func (s *story) unreportedBeforeDetached() {
	deleted := once(controllerUser, "volumeattachments", "delete").were(s)[0]
	writes := asked{2, controllerUser, "nodes/status", []string{"patch"}}.were(s)
	unreported := writes[len(writes)-1]
	s.causes("the volume has left volumesAttached before it is detached", unreported, deleted)
	s.until("the node's pods are looked at between the two", func() error {
		for _, e := range s.requests(controllerUser, "pods", "list") {
			if !e.Received.Before(unreported.Received) && !e.Received.After(deleted.Received) {
				return nil
			}
		}
		return fmt.Errorf("the controller lists none after %s and before %s", unreported, deleted)
	})
}

func (s *story) everyStage() {
	s.until("every stage of the path was seen", func() error {
		pods := s.Timeline.Pods()
		if len(pods) != 1 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		for _, stage := range sandbox.Stages() {
			if _, seen := pods[0].At[stage]; !seen && (s.moorage() || !stage.OfMoorage()) {
				return fmt.Errorf("it was not %s", stage)
			}
		}
		return nil
	})
}
