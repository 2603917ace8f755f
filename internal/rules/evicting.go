// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// FitsByEviction says whether a request does not fit a node but would fit without the node's pods of lower
// priority: preemption there is worth a try. It costs the node's attachments.
func (a Arbiter) FitsByEviction(s ledger.Snapshot, r Request, priority int32, n ledger.NodeName, now time.Time) bool {
	v := a.Fit(s, r, n, now)
	if v.Allowed() || slices.ContainsFunc(v.Reasons, func(reason Reason) bool { return !reason.LiftedByEviction(n) }) {
		return false
	}
	without := &ledger.Delta{}
	if d := s.Delta(); d != nil {
		without = d.Clone()
	}
	for uid, other := range usersAt(s, n) {
		if other.Priority < priority {
			without.Remove(uid)
		}
	}
	return len(without.Removed) > 0 && a.Fit(s.With(without), r, n, now).Allowed()
}

// LowestPriority is the lowest priority of the pods that use volumes at a node: up to this priority
// FitsByEviction is false. False: no pod uses a volume there. It costs the node's attachments.
func LowestPriority(s ledger.Snapshot, n ledger.NodeName) (lowest int32, some bool) {
	for _, pod := range usersAt(s, n) {
		if !some || pod.Priority < lowest {
			lowest, some = pod.Priority, true
		}
	}
	return lowest, some
}

// usersAt yields the pods that use or have reserved volumes at a node, once for each volume.
func usersAt(s ledger.Snapshot, n ledger.NodeName) iter.Seq2[string, *ledger.Pod] {
	return func(yield func(string, *ledger.Pod) bool) {
		node := s.Node(n)
		if node == nil {
			return
		}
		for _, id := range node.At() {
			for _, u := range s.Volume(id).NodeVolume(n).Users {
				if pod := s.Pod(u.Pod); pod != nil && !yield(u.Pod, pod) {
					return
				}
			}
		}
	}
}
