// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// nodeFailureWait guards I3 and I9: a node's silence alone detaches no volume, for its pod may still write.
func nodeFailureWait() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "node-failure-wait",
		Doc: "A node's kubelet is killed, and nobody vouches that the node is off: the wait, its reason and the ways out are on the waiting pod, the claim and the VolumeHold, until the node is back. " +
			"Upstream: nothing, for ever.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Shape: failingNodes,
		Takes: 35 * time.Second,
		Run: tell(func(s *story) {
			old := s.evictable()
			s.say("the kubelet of %s, where %s runs, is killed; nobody knows what still writes", old.Spec.NodeName, old.Name)
			s.must(s.Cluster.Kill(s.ctx, old.Spec.NodeName))
			replacement := s.replaced(old)
			s.toldOfDeadNode(old.Spec.NodeName, replacement)
			s.bystander(replacement.Spec.NodeName)
			s.untouched(old, replacement)
			s.show("pods", "volumeattachments")
			s.say("a pod that came later runs, and of the dead node's volume nothing was touched; now the node comes back")
			s.must(s.Cluster.StartAgain(old.Spec.NodeName))
			s.runs(replacement.Name)
			s.say("%s runs on %s", replacement.Name, replacement.Spec.NodeName)
		}),
	}
}

func (s *story) boundElsewhere(pod *corev1.Pod, node string) error {
	switch pod.Spec.NodeName {
	case "":
		return errors.New("it has no node")
	case node:
		return fmt.Errorf("it is bound to %s", node)
	}
	return nil
}

func (s *story) toldOfDeadNode(node string, waiting *corev1.Pod) {
	if !s.moorage() {
		s.toldInEvent(waiting.Name, "FailedAttachVolume", "Waiting for detach")
		s.say("%s is told: Volume is already used by pod(s); and nothing else", waiting.Name)
		return
	}
	texts := []string{node + ", which is not ready", "when the node comes back", corev1.TaintNodeOutOfService}
	s.until("the waiting pod is told of the dead node, and of the ways out", func() error {
		return told(s.View.Pod(s.Namespace, waiting.Name), "NodeUnreachable", texts...)
	})
	s.until("the VolumeHold tells the same", func() error {
		hold, err := s.hold("data")
		if err != nil {
			return err
		}
		return holdTells(hold, v1alpha1.HoldDetachPending, metav1.ConditionTrue, "NodeUnreachable", texts...)
	})
	s.until("the claim is told the same, in an event", func() error { return s.claimTold("data", texts...) })
	s.sayTold(waiting.Name)
	taint := "taint node " + node + " " + corev1.TaintNodeOutOfService
	s.until("kubectl moorage explain names the command that vouches for the machine", func() error {
		page := s.moorageCommand("explain", "pod/"+waiting.Name)
		if !strings.Contains(strings.Join(strings.Fields(page.out), " "), taint) {
			return fmt.Errorf("it does not say %q: %s%s", taint, page.out, page.err)
		}
		return nil
	})
	s.show("pods", "volumeholds", "pod/"+waiting.Name)
}

func (s *story) claimTold(claim string, texts ...string) error {
	var last string
	for _, e := range s.View.Events(s.Namespace) {
		if e.InvolvedObject.Kind != "PersistentVolumeClaim" || e.InvolvedObject.Name != claim || e.Type != corev1.EventTypeWarning {
			continue
		}
		last = e.Message
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(e.Message, text) }) {
			return nil
		}
	}
	return fmt.Errorf("the last warning of claim %s is %q", claim, last)
}
