// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// Reserve has the ledger count a pod at a node as if the pod was bound there, until Unreserve, until the
// pod is seen at a node, or until it is gone. The API does not know this. An unseen pod is taken in; for a
// seen pod the seen state counts.
//
// A pod that the ledger has seen at a node stays there.
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

// Unreserve ends what Reserve began, if the pod is not seen at a node by now.
func (l *Ledger) Unreserve(now time.Time, uid string) Touched {
	l.mu.Lock()
	defer l.mu.Unlock()
	var t Touched
	old := l.facts.pods.get(uid)
	if old == nil || !old.Reserved {
		return t
	}
	l.begin(now)
	if old.unseen { // no event would ever show its end
		PodGone{UID: uid}.apply(l, now, &t)
	} else {
		free := *old
		free.Node, free.Reserved = "", false
		l.putPod(now, &t, old, free)
	}
	l.gather(t)
	return t
}
