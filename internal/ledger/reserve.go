// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// Reserve counts a pod as bound to a node until Unreserve, its sight at a node, or its end. The API does
// not know this. A seen pod keeps its seen state.
//
// A pod seen at a node stays there.
func (l *Ledger) Reserve(now time.Time, pod Pod, n NodeName) Touched {
	l.mu.Lock()
	defer l.mu.Unlock()
	var t Touched
	l.begin(now)
	old := l.facts.pods.get(pod.UID)
	switch {
	case old == nil:
		pod.unseen = true
	case old.Node != "" && !old.Reserved:
		return t
	default:
		pod = *old
	}
	pod.Node, pod.Reserved = n, true
	l.putPod(now, &t, old, pod)
	l.gather(t)
	return t
}

// Unreserve ends a reservation of a pod that is not yet seen at a node.
func (l *Ledger) Unreserve(now time.Time, uid string) Touched {
	l.mu.Lock()
	defer l.mu.Unlock()
	var t Touched
	old := l.facts.pods.get(uid)
	if old == nil || !old.Reserved {
		return t
	}
	l.begin(now)
	if old.unseen { // no event would end it
		PodGone{UID: uid}.apply(l, now, &t)
	} else {
		free := *old
		free.Node, free.Reserved = "", false
		l.putPod(now, &t, old, free)
	}
	l.gather(t)
	return t
}
