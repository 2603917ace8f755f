// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

// FencedAt is a Node's condition that the machine writes no more, as this process saw it.
type FencedAt struct {
	FencedCondition
	At time.Time // first seen
	// Void: the machine may have run since, as its kubelet was heard or it was seen Ready. A new condition
	// or time ends that.
	Void bool
}

// FencedBy returns a node's condition as this process saw it; false: none.
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

// seeFenced takes in a node's new conditions. ended: a proof may have ended. It needs an owned, updated
// record.
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

// voidFenced: a heard kubelet refutes earlier conditions. It needs an owned record.
func (n *Node) voidFenced() {
	n.FencedAt = slices.Clone(n.FencedAt)
	for i := range n.FencedAt {
		n.FencedAt[i].Void = true
	}
}

// IsCutOff says whether a driver's storage has cut off the machine.
func (n *Node) IsCutOff(driver string) bool {
	if n == nil || !n.Exists {
		return false
	}
	_, cut := slices.BinarySearch(n.CutOff, driver)
	return cut
}

// ProvesCutOff: a driver's storage is proved to have cut off the present machine. The condition was not
// seen for an earlier machine.
func (n *Node) ProvesCutOff(driver string) bool {
	return n.IsCutOff(driver) && !slices.Contains(n.CutBefore, driver)
}

// seeCutOff notes a new state's cut-offs. replaced: it names another machine, and earlier conditions are
// not about it. It needs an owned, updated record.
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

// BelievesCutOff says whether a Node's cut-off condition is proof.
func (s Snapshot) BelievesCutOff() bool { return !s.facts.doubtsCutOff }
