// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

// FencedAt is a condition of a Node that vouches that the machine writes no more, as this process has seen
// it.
type FencedAt struct {
	FencedCondition
	At time.Time // when it was seen first
	// Void says that the kubelet was heard since then, or that the node was Ready when it was seen: the
	// machine has run, or may have, since it was set. Only another condition ends that, or the same one
	// with another time.
	Void bool
}

// FencedBy returns a node's condition as seen by this process, and whether the node has it.
func (n *Node) FencedBy(condition string) (FencedAt, bool) {
	if n != nil && n.Exists {
		for _, f := range n.FencedAt {
			if f.Type == condition {
				return f, true
			}
		}
	}
	return FencedAt{}, false
}

// seeFenced takes in the conditions of a node's new state; was is the state before. It says whether
// anything has changed, and whether a proof by a condition may have ended. The record is owned, and has the
// new state.
func (n *Node) seeFenced(was *NodeState, known bool, now time.Time) (changed, ended bool) {
	before, is := n.FencedAt, &n.NodeState
	ran := known && (was.Ready == ReadyUnknown && is.Ready == ReadyFalse || was.BootID != is.BootID || was.SystemUUID != is.SystemUUID)
	var list []FencedAt
	for _, c := range is.Fenced {
		f := FencedAt{FencedCondition: c, At: now}
		if i := slices.IndexFunc(before, func(f FencedAt) bool { return f.FencedCondition == c }); known && i >= 0 {
			f.At, f.Void = before[i].At, before[i].Void || ran
		}
		f.Void = f.Void || is.Ready == ReadyTrue
		list = append(list, f)
	}
	n.FencedAt = list
	ended = slices.ContainsFunc(before, func(f FencedAt) bool { return !f.Void && !slices.Contains(list, f) })
	return !slices.Equal(before, list), ended
}

// voidFenced is for a kubelet that was heard: earlier conditions about its machine are no longer true. The
// record is owned.
func (n *Node) voidFenced() {
	n.FencedAt = slices.Clone(n.FencedAt)
	for i := range n.FencedAt {
		n.FencedAt[i].Void = true
	}
}

// IsCutOff says whether the storage of a driver has cut off the Node's machine.
func (n *Node) IsCutOff(driver string) bool {
	if n == nil || !n.Exists {
		return false
	}
	_, cut := slices.BinarySearch(n.CutOff, driver)
	return cut
}

// ProvesCutOff says whether it is proved that the storage of a driver has cut off the Node's present
// machine: as far as this process saw, the condition was not about an earlier machine.
func (n *Node) ProvesCutOff(driver string) bool {
	return n.IsCutOff(driver) && !slices.Contains(n.CutBefore, driver)
}

// seeCutOff takes in which storages have cut the machine off by a node's new state, and whether the node
// names another machine now: earlier conditions are about the machine before. A new object has no earlier
// conditions. The record is owned, and has the new state.
func (n *Node) seeCutOff(was *NodeState, known, replaced bool) {
	var before []string
	for _, driver := range n.CutOff {
		if known && slices.Contains(was.CutOff, driver) && (replaced || slices.Contains(n.CutBefore, driver)) {
			before = append(before, driver)
		}
	}
	n.CutBefore = before
}

func (e CutOffBelieved) apply(l *Ledger, _ time.Time, t *Touched) {
	if l.facts.doubtsCutOff != e.Believed {
		return
	}
	l.facts.doubtsCutOff = !e.Believed
	for n := range l.facts.nodes.all() {
		if len(n.CutOff) > 0 {
			t.Volumes = append(t.Volumes, n.At()...)
			t.node(n.Name)
		}
	}
}

// BelievesCutOff says whether a Node's condition that a storage has cut it off is proof.
func (s Snapshot) BelievesCutOff() bool { return !s.facts.doubtsCutOff }
