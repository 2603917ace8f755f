// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// handoverFailing guards I9: a failed detach frees no volume. Upstream attaches it to the next node
// (docs/internals/conformance-controller.md, hazard 5).
func handoverFailing() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "handover-failing",
		Doc: "As handover, and the detach fails: nobody attaches the volume elsewhere until a detach has succeeded, and the waiting pod is told. " +
			"Upstream and Cooperative, where kube-controller-manager attaches: tries to attach it to the second node while it is at the first.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			s.statefulSet("db")
			first := s.runs("db-0")
			from, handle := first.Spec.NodeName, s.handle(dataOf("db-0"))
			s.say("db-0 runs on %s; it is cordoned, and the pod is evicted; the detach fails", from)
			mend := s.failDetach(handle)
			s.cordon(from)
			s.remove("db-0")
			to := s.boundAgain("db-0", first).Spec.NodeName
			var hold types.UID
			if s.Mode == sandbox.Standalone {
				hold = s.toldOfFailedHandover(from)
				s.bystander(to)
				s.never(diskapi.ControllerPublish, handle, to)
				s.say("a pod that came later runs on %s, and db-0 still waits; now detaches work again", to)
			} else {
				s.attachedTwice(handle, to)
			}
			mend()
			s.runs("db-0")
			s.say("db-0 runs on %s", to)
			if s.Mode == sandbox.Standalone {
				s.eventsOnce("Resolved", corev1.EventTypeNormal, hold)
			}
			s.uncordon(from)
		}),
	}
}

func (s *story) toldOfFailedHandover(from string) (uid types.UID) {
	text := "from " + from + " failed and will be tried again"
	s.until("the pod is told that the detach fails", func() error {
		return told(s.View.Pod(s.Namespace, "db-0"), "DetachFailed", text, diskBusy)
	})
	s.until("the VolumeHold says that the detach fails", func() error {
		hold, err := s.hold(dataOf("db-0"))
		if err != nil {
			return err
		}
		uid = hold.UID
		return holdTells(hold, v1alpha1.HoldDetachPending, metav1.ConditionTrue, "DetachFailed", text, diskBusy)
	})
	s.eventsOnce("DetachFailed", corev1.EventTypeWarning, uid)
	s.sayTold("db-0")
	s.show("pods", "volumeholds")
	return uid
}

// The hold may be gone by then.
func (s *story) eventsOnce(reason, kind string, hold types.UID) {
	s.until("claim and hold are told "+reason, func() error {
		claim := s.View.Claim(s.Namespace, dataOf("db-0"))
		for namespace, uid := range map[string]types.UID{s.Namespace: claim.UID, metav1.NamespaceDefault: hold} {
			found := 0
			for _, e := range s.View.Events(namespace) {
				if e.InvolvedObject.UID == uid && e.Reason == reason && e.Type == kind {
					found += int(e.Count)
				}
			}
			if found != 1 {
				return fmt.Errorf("there are %d events %s in namespace %s", found, reason, namespace)
			}
		}
		return nil
	})
}

func (s *story) attachedTwice(handle, to string) {
	s.until("the volume is to be attached to "+to+" while it is at the first node", func() error {
		if len(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, to)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	s.must(s.ExpectViolation(s.ctx, diskapi.TwoNodes))
	s.say("after the failed detach, the volume is attached to %s, too; here the disk service refuses, and the judge calls it %s", to, diskapi.TwoNodes)
}
