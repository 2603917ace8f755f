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
	// cutFor is how long a node is cut off: longer than the six minutes after which kube-controller-manager
	// and, by default, Moorage detach from a node without a sign.
	cutFor = 8 * time.Minute
	// cutTogether is how many databases are on a node that is cut off.
	cutTogether = 5
	// bothWrite is how many records each of two databases on one disk acknowledges while both run.
	bothWrite = 50
)

// RealCuts cuts nodes with databases off from the API server, and not from their disks, has a person
// delete the pods with force, and counts what is lost. Each row is played so many times.
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

// cutOff is the state of a node that is cut off.
type cutOff struct {
	name string
	// unsafe says that the volume is detached by time alone, while the old pod may write.
	unsafe bool
	// proof gives proof that the node writes no more, and ends takes it back.
	proof, ends func(node string)
}

// splits plays a cut so many times.
func (s *story) splits(cut cutOff, repeat int) {
	var took []time.Duration
	for range repeat {
		took = append(took, s.split(cut)...)
	}
	if len(took) > 0 {
		s.countTimes(cut.name+": until a second database answers", took)
	}
}

// split plays a cut once, and returns how long each second database took to answer.
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
	s.cordon(node) // a third database reads from the disk, at a node that was not cut off
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

// seconds waits until second databases answer, if any do. Where the first ones may go on, both then write for
// a while.
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

// onlyAt has pods come to one node only; to every node if it has no name.
func (s *story) onlyAt(name string) {
	for _, node := range s.View.Nodes() {
		if name != "" && node.Name != name {
			s.cordon(node.Name)
		} else {
			s.uncordon(node.Name)
		}
	}
}
