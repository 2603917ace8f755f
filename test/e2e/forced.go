// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// forcedDetach guards that the policy's time begins with the end of the last pod object and survives a
// change of leader.
func forcedDetach() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "forced-detach",
		Doc: "A node is switched off, its pod deleted by force, and the policy's time (a minute, not six) runs; the leader is killed on the way. " +
			"When it is over the volume is detached by force, told with its rule, and the pod's successor runs.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: failingNodes,
		Takes: 95 * time.Second,
		Run: tell(func(s *story) {
			s.policy("forced", v1alpha1.AttachPolicySpec{
				ForceDetach: &v1alpha1.ForceDetachPolicy{AfterPodGone: "1m"},
			})
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			s.must(s.Cluster.PowerOff(s.ctx, from))
			replacement := s.replaced(old)
			s.bystander(replacement.Spec.NodeName)
			s.untouched(old, replacement)
			s.say("%s is switched off; as long as %s is there, nothing is forced. It is deleted by force", from, old.Name)
			s.must(s.forceDelete(s.ctx, old.Name))
			s.forcing("AfterPodGone", 0)
			s.forcing("AfterPodGone", 30)
			s.must(s.Cluster.Kill(s.ctx, sandbox.MoorageController))
			s.must(s.Cluster.StartAgain(sandbox.MoorageController))
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.say("half a minute is over; the leader is killed and replaced")
			s.runs(replacement.Name)
			s.goesOn(handle, from, replacement.Spec.NodeName)
			s.forcedBy("AfterPodGone", from)
			s.say("%s runs on %s: the volume was detached by rule AfterPodGone", replacement.Name, replacement.Spec.NodeName)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.noPolicy("forced")
		}),
	}
}

// This case hangs in stock Kubernetes: a dead node with a Terminating pod.
func forcedUnreachable() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "forced-unreachable",
		Doc: "A node is switched off and nobody comes; its pod stays Terminating. The wait and the ways out are told until the policy's time since the node became unreachable is over: " +
			"then the volume is detached by force, told with its rule, and the pod's successor runs. Upstream: as in node-failure-wait, for ever.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: failingNodes,
		Takes: 95 * time.Second,
		Run: tell(func(s *story) {
			s.policy("unreachable", v1alpha1.AttachPolicySpec{
				ForceDetach: &v1alpha1.ForceDetachPolicy{AfterUnreachable: &metav1.Duration{Duration: time.Minute}},
			})
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			s.must(s.Cluster.PowerOff(s.ctx, from))
			replacement := s.replaced(old)
			s.toldOfDeadNode(from, replacement)
			s.forcing("AfterUnreachable", 0)
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.say("the policy's time runs")
			s.runs(replacement.Name)
			s.goesOn(handle, from, replacement.Spec.NodeName)
			s.forcedBy("AfterUnreachable", from)
			pod := s.View.Pod(s.Namespace, old.Name)
			s.expect(pod != nil && pod.UID == old.UID && pod.DeletionTimestamp != nil, "the old pod is still Terminating", "it is %v", pod)
			s.say("%s runs on %s, though %s is still Terminating: the volume was detached by rule AfterUnreachable", replacement.Name, replacement.Spec.NodeName, old.Name)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.gone(old.Name)
			s.noPolicy("unreachable")
		}),
	}
}

func (s *story) forcedBy(rule, node string) {
	s.until("the event says by which rule", func() error {
		for _, e := range s.View.Events(metav1.NamespaceDefault) {
			if e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == node && e.Reason == "ForcedDetach" && strings.Contains(e.Message, rule) {
				return nil
			}
		}
		return errors.New("there is no such event")
	})
}

func (s *story) forcing(rule v1alpha1.ForceDetachRule, seconds int64) {
	s.until(fmt.Sprintf("rule %s has come to %d s", rule, seconds), func() error {
		hold, err := s.hold("data")
		if err != nil {
			return err
		}
		force := hold.Status.ForceDetach
		if force == nil || force.Rule != rule || force.ElapsedSeconds < seconds {
			return fmt.Errorf("the hold says %+v", force)
		}
		return nil
	})
}

func (s *story) policy(name string, spec v1alpha1.AttachPolicySpec) {
	spec.Driver = sandbox.DriverName
	_, err := s.own().AttachPolicies().Create(s.ctx, &v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	s.must(err)
}

func (s *story) noPolicy(name string) {
	s.must(s.own().AttachPolicies().Delete(s.ctx, name, metav1.DeleteOptions{}))
}
