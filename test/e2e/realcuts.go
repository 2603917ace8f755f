// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	// cutFor is longer than the six minutes after which kube-controller-manager and, by default, Moorage
	// detach.
	cutFor      = 8 * time.Minute
	cutTogether = 5
	bothWrite   = 50
)

// RealCuts cuts nodes off from the API server, not from their disks, and counts lost records.
func RealCuts(repeat int) sandbox.Scenario {
	return sandbox.Scenario{
		Name: "real-cuts",
		Doc: fmt.Sprintf("%d PostgreSQL on one node write numbered records; the node is cut off from the API server, %d times each with and without proof that its storage refuses it, and the pods are deleted with force. "+
			"Each first database is written on until its node is back. It needs root, and make real.", cutTogether, repeat),
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Extra:     true,
		Exclusive: true,
		Timeout:   time.Duration(repeat)*35*time.Minute + 20*time.Minute,
		Shape:     func(shape *sandbox.Shape) { dataNodes(shape); shape.Slots = 2 * cutTogether },
		Run: tell(func(s *story) {
			if s.Mode != sandbox.Standalone {
				s.must(s.Compare())
			}
			s.warm(databases[0].image)
			fenced := cutOff{
				name: "cut off, its storage refused",
				proof: func(node string) {
					s.must(s.Cluster.CutStorage(node))
					s.taint(node, outOfService())
				},
				ends: func(node string) { s.untaint(node, outOfService()) },
			}
			unfenced := cutOff{name: "cut off", unsafe: true, proof: func(string) {}, ends: func(string) {}}
			if s.Mode != sandbox.Standalone {
				s.splits(fenced, repeat)
				s.splits(unfenced, repeat)
				return
			}
			s.policy("by-evidence", v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{AfterPodGone: v1alpha1.ForceDetachNever}})
			s.splits(fenced, repeat)
			unfenced.name, unfenced.unsafe = "cut off, only by evidence", false
			s.splits(unfenced, 1) // no time is measured
			s.noPolicy("by-evidence")
			s.ExpectForced()
			unfenced.name, unfenced.unsafe = "cut off", true
			s.splits(unfenced, repeat)
		}),
	}
}

type cutOff struct {
	name string
	// The volume is detached by time alone, while the old pod may write.
	unsafe      bool
	proof, ends func(node string)
}

func (s *story) splits(cut cutOff, repeat int) {
	var took []time.Duration
	for range repeat {
		took = append(took, s.split(cut)...)
	}
	if len(took) > 0 {
		s.countTimes(cut.name+": until a second database answers", took)
	}
}

func (s *story) split(cut cutOff) (took []time.Duration) {
	const node = "worker-1"
	s.onlyAt(node)
	var all []*writer
	olds := map[*writer]*corev1.Pod{}
	for i := range cutTogether {
		d := databases[0]
		d.name = fmt.Sprintf("%s-%d", d.name, i)
		c := s.writer(d)
		c.pace = 500 * time.Millisecond
		olds[c] = s.successor("the database answers", d.name, s.isReady)
		c.staysWith(olds[c])
		all = append(all, c)
	}
	for _, c := range all {
		c.acknowledges(olds[c].UID)
		c.first.acknowledges(olds[c].UID)
		s.run(olds[c].Name, c.database.begin)
	}
	s.onlyAt("")
	s.must(s.Cluster.Cut(node))
	s.nodeIs(node, false)
	cut.proof(node)
	began := time.Now()
	for _, c := range all {
		s.deleteAt(olds[c])
	}
	took = s.seconds(cut, all, olds, began)
	s.cordon(node) // a third database reads the disk, at a node that was not cut off
	s.must(s.Cluster.Restore(node))
	s.nodeIs(node, true)
	cut.ends(node)
	for _, c := range all {
		c.stop()
	}
	for _, c := range all {
		second := s.successor("the database is elsewhere or again", c.name, s.isRunning, olds[c].UID)
		s.remove(second.Name) // the next one reads all from the disk
		s.successor("another pod follows", c.name, func(*corev1.Pod) error { return nil }, olds[c].UID, second.UID)
		c.mayLose = cut.unsafe
		if cut.unsafe {
			c.patience = 20 * time.Second
		}
		s.counts(c, second.Name, cut.name+": ")
	}
	s.add(cut.name+": databases", len(all))
	return took
}

func (s *story) seconds(cut cutOff, all []*writer, olds map[*writer]*corev1.Pod, began time.Time) (took []time.Duration) {
	answers := map[*writer]*corev1.Pod{}
	before := map[*writer]int{}
	err := s.EventuallyWithin(s.ctx, cutFor, "each database answers elsewhere", func() error {
		for _, c := range all {
			for _, pod := range s.PodsOf(sandbox.AppLabel, c.name) {
				if answers[c] == nil && pod.UID != olds[c].UID && s.isReady(pod) == nil {
					answers[c], before[c] = pod, c.first.last()
					took = append(took, time.Since(began))
				}
			}
		}
		if len(answers) < len(all) {
			return fmt.Errorf("%d of %d do", len(answers), len(all))
		}
		return nil
	})
	s.say("%s: %d of %d databases answer elsewhere after %.0f s: %v", cut.name, len(answers), len(all), time.Since(began).Seconds(), err)
	s.add(cut.name+": second databases that answer while the node is cut off", len(answers))
	if !cut.unsafe {
		return took
	}
	for c, pod := range answers {
		err := errors.Join(
			ended(func() { c.acknowledgesMore(pod.UID, bothWrite) }),
			ended(func() { c.first.acknowledgesMore(olds[c].UID, before[c]-ofFirst+bothWrite) }),
		)
		s.say("%s: %s: both write: %v", cut.name, c.name, err)
		s.add(cut.name+": records that the first acknowledged after the second answered", c.first.last()-before[c])
	}
	return took
}

func (s *story) onlyAt(name string) {
	for _, node := range s.View.Nodes() {
		if name != "" && node.Name != name {
			s.cordon(node.Name)
		} else {
			s.uncordon(node.Name)
		}
	}
}
