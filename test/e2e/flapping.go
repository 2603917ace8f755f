// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// flapping guards that afterUnreachable counts a single silence of a node.
func flapping() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "flapping",
		Doc: "A node is lost three times, cut off or stopped, and comes back each time before the policy's minute is over; by the third time the first was more than a minute ago. " +
			"Its pods stay and write, and nothing of theirs is touched, though a volume is wanted elsewhere. When its pod is deleted that volume moves.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Shape:   failingNodes,
		Takes:   110 * time.Second,
		Timeout: 6 * time.Minute,
		Run: tell(func(s *story) {
			s.policy("unreachable", v1alpha1.AttachPolicySpec{
				ForceDetach: &v1alpha1.ForceDetachPolicy{AfterUnreachable: &metav1.Duration{Duration: unreachableFor}},
			})
			s.claim("data")
			s.pod("db", "data")
			db := s.runs("db")
			from, handle := db.Spec.NodeName, s.handle("data")
			to := s.otherNode(from)
			s.bystanderNamed("neighbour", from)
			stay := []left{s.leftAt("db", "data"), s.leftAt("neighbour", "data-of-neighbour")}
			s.podAt(to, "next", "data")
			s.until("next is told that the volume is at "+from, func() error { return unscheduled(s.View.Pod(s.Namespace, "next"), from) })

			cut := func() { s.must(s.Cluster.Cut(from)) }
			restore := func() { s.must(s.Cluster.Restore(from)) }
			first := s.lost(from, cut)
			s.back(from, restore)
			s.lost(from, func() { s.must(s.Cluster.Pause(from)) })
			s.back(from, func() { s.must(s.Cluster.Resume(from)) })
			s.lost(from, cut)
			s.longAgo(first)
			s.unmoved(stay)
			s.back(from, restore)
			s.bystander(to)
			s.unmoved(stay)
			s.say("%s was lost three times since %s, each time for less than %s: nothing was touched", from, first.Format(time.TimeOnly), unreachableFor)

			s.remove("db")
			s.gone("db")
			s.runs("next")
			s.goesOn(handle, from, to)
			s.unmoved(stay[1:])
			s.say("db is deleted: its volume moves, and next runs on %s", to)
			s.noPolicy("unreachable")
		}),
	}
}

func (s *story) lost(node string, breaks func()) time.Time {
	breaks()
	s.nodeIs(node, false)
	since := s.readySince(node)
	s.say("%s is lost", node)
	return since
}

func (s *story) back(node string, mends func()) {
	mends()
	s.nodeIs(node, true)
	s.say("%s is back", node)
}

func (s *story) readySince(node string) time.Time {
	for _, c := range s.View.Node(node).Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func (s *story) longAgo(then time.Time) {
	s.until("the first time is longer ago than the policy says", func() error {
		if ago := time.Since(then); ago < unreachableFor+5*time.Second {
			return fmt.Errorf("%s", ago.Round(time.Second))
		}
		return nil
	})
}

type left struct {
	pod, claim, node, handle string
	uid, attachment          types.UID
}

func (s *story) leftAt(pod, claim string) left {
	p := s.View.Pod(s.Namespace, pod)
	return left{
		pod: pod, claim: claim, node: p.Spec.NodeName, handle: s.handle(claim),
		uid: p.UID, attachment: s.attachment(claim, p.Spec.NodeName).UID,
	}
}

func (s *story) unmoved(all []left) {
	for _, was := range all {
		pod, va := s.View.Pod(s.Namespace, was.pod), s.attachment(was.claim, was.node)
		s.expect(pod != nil && pod.UID == was.uid && pod.DeletionTimestamp == nil, "pod "+was.pod+" is there, and stays", "it is %v", pod)
		s.expect(va != nil && va.UID == was.attachment && va.DeletionTimestamp == nil, "the VolumeAttachment of "+was.pod+" is there, and stays", "it is %v", va)
		s.never(diskapi.ControllerUnpublish, was.handle, was.node)
	}
}
