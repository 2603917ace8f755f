// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// drained guards that a drain strands no pod, with two free slots for three pods.
func drained() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "drain",
		Doc: "kubectl moorage drain evicts pods as there is room for their volumes elsewhere, keeps disruption budgets, " +
			"and ends when the volumes are unmounted.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: threeByFour,
		Run: tell(func(s *story) {
			const node = "worker-1"
			fillers := s.twoSlotsFree(node)
			pods := map[string]*corev1.Pod{}
			for _, name := range []string{"a", "b", "c"} {
				s.statefulSet(name)
				pods[name] = s.runs(name + "-0")
				s.expect(pods[name].Spec.NodeName == node, name+" runs at "+node, "it runs at %s", pods[name].Spec.NodeName)
			}
			budget := s.budget("a")
			s.uncordon("worker-2")
			s.uncordon("worker-3")
			ended, page := make(chan answer, 1), &sharedPage{}
			go func() { ended <- s.moorageWrites(page, "drain", node, "--ignore-daemonsets", "--timeout", "3m") }()
			for _, name := range []string{"b", "c"} {
				s.movedFrom(node, pods[name])
			}
			s.stays(pods["a"])
			s.must(s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Delete(s.ctx, budget, metav1.DeleteOptions{}))
			s.until("the drain says that a has no room elsewhere", func() error {
				if a := s.View.Pod(s.Namespace, "a-0"); a == nil || a.UID != pods["a"].UID || a.DeletionTimestamp != nil {
					return sandbox.Never("a is evicted")
				}
				if text := page.String(); !strings.Contains(text, "a-0 stays for now: no other node") {
					return errors.New(text)
				}
				return nil
			})
			s.say("two moved to the two free slots; a, which its budget kept and which now has no slot elsewhere, runs on")
			s.remove(fillers[0])
			s.movedFrom(node, pods["a"])
			a := <-ended
			s.expect(a.code == 0, "the drain ends with 0", "%d: %s%s", a.code, page, a.err)
			s.say("%s", page)
			n := s.View.Node(node)
			s.expect(n.Spec.Unschedulable && len(n.Status.VolumesInUse) == 0, "the node is cordoned and has nothing in use", "%v", n.Status.VolumesInUse)
			s.uncordon(node)
		}),
	}
}

type sharedPage struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *sharedPage) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *sharedPage) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (s *story) twoSlotsFree(node string) (pods []string) {
	for _, other := range []string{"worker-2", "worker-3"} {
		for i := range 3 {
			name := fmt.Sprintf("%s-%d", other, i)
			s.claim(name)
			s.podAt(other, name, name)
			pods = append(pods, name)
		}
	}
	s.allRun("three of four slots are taken beside "+node, pods...)
	s.cordon("worker-2")
	s.cordon("worker-3")
	return pods
}

func (s *story) budget(app string) string {
	one := intstr.FromInt32(1)
	budget, err := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Create(s.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{sandbox.AppLabel: app}}},
	}, metav1.CreateOptions{})
	s.must(err)
	return budget.Name
}

func (s *story) movedFrom(node string, before *corev1.Pod) {
	s.until("another "+before.Name+" runs elsewhere", func() error {
		pod := s.View.Pod(s.Namespace, before.Name)
		if pod == nil || pod.UID == before.UID {
			return errors.New("it is not made again yet")
		}
		if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return sandbox.Never("it finds no node: %s", c.Message)
		}
		if pod.Spec.NodeName == node {
			return sandbox.Never("it is bound to %s again", node)
		}
		return s.Running(pod.Name)
	})
}

func (s *story) stays(before *corev1.Pod) {
	pod := s.View.Pod(s.Namespace, before.Name)
	s.expect(pod != nil && pod.UID == before.UID && pod.DeletionTimestamp == nil, before.Name+" is not evicted", "it is")
}
