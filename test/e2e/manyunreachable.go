// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// manyUnreachable guards the brake on afterUnreachable: its time begins anew once few nodes are
// unreachable.
func manyUnreachable() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "many-unreachable",
		Doc: "A node is switched off, and two more of five can't reach the API server: the policy's time since a node became unreachable takes nothing, and the hold and the waiting pod say why. " +
			"One node is back: now the time runs, also by another leader, and the volume of the node that is off is detached.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   func(shape *sandbox.Shape) { failingNodes(shape); shape.Nodes = 5 },
		Takes:   3 * time.Minute,
		Timeout: 8 * time.Minute,
		Run: tell(func(s *story) {
			s.policy("unreachable", v1alpha1.AttachPolicySpec{
				ForceDetach: &v1alpha1.ForceDetachPolicy{AfterUnreachable: &metav1.Duration{Duration: unreachableFor}},
			})
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			others := s.cutTwoBeside(from)
			s.until("nothing is placed at the two nodes that are cut off", func() error {
				return errors.Join(s.keepsPodsOff(others[0]), s.keepsPodsOff(others[1]))
			})
			// It is the last of the three: Kubernetes evicts nothing where so many nodes of a zone are not
			// Ready, but would evict the first node's pod.
			s.must(s.Cluster.PowerOff(s.ctx, from))
			s.until("nothing is placed at the node that is off", func() error { return s.keepsPodsOff(from) })
			s.remove(old.Name)
			replacement := s.replaced(old)
			brake := "more than 55% of the nodes without a zone can't be reached"
			s.until("the hold says why no time runs", func() error {
				hold, err := s.hold("data")
				if err != nil {
					return err
				}
				return holdTells(hold, v1alpha1.HoldDetachPending, metav1.ConditionTrue, "NodeUnreachable", brake)
			})
			s.until("the waiting pod is told the same", func() error { return told(s.View.Pod(s.Namespace, replacement.Name), "NodeUnreachable", brake) })
			s.sayTold(replacement.Name)
			s.bystanders(replacement.Spec.NodeName)
			s.unreachableLong(from)
			s.untouched(old, replacement)
			s.say("two pods that came later run, and the leader is another one; %s has been unreachable for longer than the policy says, and nothing was taken from it", from)
			s.must(s.Cluster.Restore(others[0]))
			s.nodeIs(others[0], true)
			s.forcing(v1alpha1.ForceDetachAfterUnreachable, 0)
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.runs(replacement.Name)
			s.goesOn(handle, from, replacement.Spec.NodeName)
			s.forcedBy(string(v1alpha1.ForceDetachAfterUnreachable), from)
			s.say("%s is back: two of five are few enough, and %s runs on %s", others[0], replacement.Name, replacement.Spec.NodeName)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.must(s.Cluster.Restore(others[1]))
			s.nodeIs(from, true)
			s.nodeIs(others[1], true)
			s.gone(old.Name)
			s.noPolicy("unreachable")
		}),
	}
}

func (s *story) unreachableLong(node string) {
	s.until(node+" has been unreachable for long", func() error {
		for _, c := range s.View.Node(node).Status.Conditions {
			if c.Type == corev1.NodeReady && time.Since(c.LastTransitionTime.Time) < unreachableFor+10*time.Second {
				return fmt.Errorf("only since %s", c.LastTransitionTime)
			}
		}
		return nil
	})
}

func (s *story) cutTwoBeside(node string) []string {
	var others []string
	for i := 1; len(others) < 2; i++ {
		if name := sandbox.NodeName(i); name != node {
			others = append(others, name)
		}
	}
	for _, name := range others {
		s.must(s.Cluster.Cut(name))
	}
	return others
}

func (s *story) keepsPodsOff(node string) error {
	unreachable := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(s.View.Node(node).Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&unreachable) }) {
		return fmt.Errorf("%s has no taint %s", node, unreachable.ToString())
	}
	return nil
}
