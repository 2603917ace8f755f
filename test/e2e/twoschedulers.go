// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// A pod counts from its Binding on, for any scheduler. Without kube-controller-manager no attachment shows
// the pods.
func twoSchedulers() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "two-schedulers",
		Doc: "kube-scheduler and Moorage's scheduler place pods onto a node with four slots, while nothing is attached: two pods each, and never a fifth. " +
			"The slot of a pod that goes is taken by a pod of the other scheduler.",
		Modes: []sandbox.Mode{sandbox.Cooperative},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const node, slots = "worker-1", 4
			stock, ours := []string{"stock-1", "stock-2", "stock-3"}, []string{"ours-1", "ours-2", "ours-3"}
			s.unattached(map[string][]string{"worker-2": stock, "worker-3": ours})
			s.must(s.Cluster.Kill(s.ctx, sandbox.ControllerManager))
			s.say("six volumes are attached nowhere, and kube-controller-manager is away")

			s.optedIn(false)
			s.bind(node, stock[:2]...)
			s.optedIn(true)
			s.bind(node, ours[:2]...)
			s.say("each scheduler has bound two pods to %s, which has %d slots", node, slots)
			s.podAt(node, ours[2], ours[2])
			s.waitsUnscheduled(ours[2], fmt.Sprintf("no free slot of driver %s (4 of 4 used)", sandbox.DriverName))
			s.optedIn(false)
			s.podAt(node, stock[2], stock[2])
			s.waitsUnscheduled(stock[2], "exceed max volume count")
			s.say("each refuses a third one")
			s.remove(stock[2]) // both would take the same slot, as two schedulers can in the same milliseconds
			s.gone(stock[2])

			s.must(s.Cluster.StartAgain(sandbox.ControllerManager))
			s.allRun("the four that were bound", stock[0], stock[1], ours[0], ours[1])
			s.remove(stock[0])
			s.runs(ours[2])
			s.podAt(node, stock[2], stock[2])
			s.waitsUnscheduled(stock[2], "exceed max volume count")
			s.remove(ours[0])
			s.runs(stock[2])
			s.say("a slot that one scheduler's pod leaves is taken by the other's")
			s.optedIn(true)
		}),
	}
}

func (s *story) unattached(claims map[string][]string) {
	for node, names := range claims {
		for _, name := range names {
			s.claim(name)
			s.podAt(node, name, name)
		}
	}
	for _, names := range claims {
		s.allRun("the pods that have the volumes made", names...)
		for _, name := range names {
			s.remove(name)
		}
	}
	for node, names := range claims {
		for _, name := range names {
			s.gone(name)
			s.until("the volume of "+name+" is attached nowhere", func() error {
				if s.attachment(name, node) != nil {
					return errors.New("it is attached")
				}
				return nil
			})
		}
	}
}

func (s *story) optedIn(on bool) {
	s.enforce(on)
	s.until(fmt.Sprintf("new pods go to Moorage's scheduler: %t", on), func() error {
		pod, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.ctx, sandbox.Pod("probe", "probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if (pod.Spec.SchedulerName != corev1.DefaultSchedulerName) != on {
			return fmt.Errorf("a pod goes to %s", pod.Spec.SchedulerName)
		}
		return nil
	})
}

func (s *story) bind(node string, names ...string) {
	for _, name := range names {
		s.podAt(node, name, name)
		s.until(name+" is bound to "+node, func() error {
			if pod := s.View.Pod(s.Namespace, name); pod == nil || pod.Spec.NodeName != node {
				return errors.New("not yet")
			}
			return nil
		})
	}
}

func (s *story) waitsUnscheduled(name, text string) {
	s.until(fmt.Sprintf("%s is refused: %s", name, text), func() error {
		pod := s.View.Pod(s.Namespace, name)
		if pod != nil && pod.Spec.NodeName != "" {
			return sandbox.Never("it is bound to %s", pod.Spec.NodeName)
		}
		return unscheduled(pod, text)
	})
}
