// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

// path is the whole way of one pod with one volume, and back. It guards the
// order of it: the volume is reported to the kubelet only after it is attached,
// and detached only after it has been taken back (docs/invariants.md, I4 and I5).
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
				s.show("volumeholds")
				s.grantedFirst()
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

// safeToMount waits until a pod is told that its volume can be mounted.
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

// grantedFirst: the scheduler binds a pod after its ticket was granted.
func (s *story) grantedFirst() {
	tickets := s.requests(schedulerUser, "volumetickets", "create")
	grants := s.requests(controllerUser, "volumetickets/status", "update", "patch")
	s.causes("the ticket is written before it is granted", tickets, grants)
	s.causes("the ticket is granted before the pod is bound", grants, s.requests(schedulerUser, "pods/binding", "create"))
}

// attachedBeforeReported: volumesAttached names the volume after its
// VolumeAttachment says attached.
func (s *story) attachedBeforeReported() {
	attached := s.requests(attacherUser, "volumeattachments/status", "patch", "update")
	writer := controllerUser
	if s.Mode == sandbox.Cooperative {
		writer = attachDetachUser
	}
	s.causes("the volume is attached before it is reported", attached, s.requests(writer, "nodes/status", "patch"))
}

// unreportedBeforeDetached: the VolumeAttachment is deleted after the volume
// has left volumesAttached, and after the pods of the node were looked at.
func (s *story) unreportedBeforeDetached() {
	writes := s.requests(controllerUser, "nodes/status", "patch")
	s.expect(len(writes) > 1, "the volume enters and leaves volumesAttached", "%d writes say so", len(writes))
	unreported := writes[len(writes)-1:]
	deleted := s.requests(controllerUser, "volumeattachments", "delete")
	looked := slices.DeleteFunc(s.requests(controllerUser, "pods", "list"), func(e audit.Event) bool {
		return e.Received.Before(unreported[0].Finished)
	})
	s.causes("the node's pods are looked at after the volume has left volumesAttached", unreported, looked)
	s.causes("the VolumeAttachment is deleted after that", looked, deleted)
}

// everyStage waits until every stage of the pod's path was seen.
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
