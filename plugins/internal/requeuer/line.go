// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// DefaultTurn is how long room is kept for a woken pod that stays silent.
const DefaultTurn = time.Second

// openings are the nodes at which a refusal of a pod was lifted since its last attempt.
type openings struct {
	anywhere bool // one of its volumes, or a policy, has changed: any node may do
	nodes    []ledger.NodeName
}

func (o openings) any() bool { return o.anywhere || len(o.nodes) > 0 }

// add returns these openings and others.
func (o openings) add(others openings) openings {
	o.anywhere = o.anywhere || others.anywhere
	for _, n := range others.nodes {
		if !slices.Contains(o.nodes, n) {
			o.nodes = append(slices.Clip(o.nodes), n)
		}
	}
	return o
}

// turn is the room that was kept for a woken pod: the pod counts as being at the node until it has
// a node or is refused, or until the time is over.
type turn struct {
	node  ledger.NodeName // empty: none
	until time.Time
}

// serveLine wakes pods for which a node has opened, in their scheduler's order, as many as there is
// room for. A woken pod counts as being at the opened node until its outcome is known. A pod that
// finds no room waits for the next change, or until a woken pod is refused for another reason.
func (w *Requeuer) serveLine(ctx context.Context, s ledger.Snapshot) {
	w.mu.Lock()
	now := w.config.Now()
	var line []*waiting
	var taken ledger.Delta
	for uid, entry := range w.pods.idle {
		if entry.turn.node != "" && now.Before(entry.turn.until) {
			taken.Add(string(uid), entry.turn.node)
			w.nextAt(entry.turn.until.Sub(now))
		}
		// A gated pod would not be tried: the opening of its gate wakes it.
		if entry.Based && !entry.gated && entry.open.any() {
			line = append(line, entry)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(line, inOrder)
	for _, entry := range line {
		if node, room := w.room(s, entry, &taken); room && !w.config.Gone(entry.pod) {
			taken.Add(string(entry.pod.UID), node)
			w.call(ctx, entry, node)
		}
	}
}

// inOrder orders pods as kube-scheduler's queue does: the higher priority first, then
// the older pod.
func inOrder(a, b *waiting) int {
	return cmp.Or(
		cmp.Compare(corev1helpers.PodPriority(b.pod), corev1helpers.PodPriority(a.pod)),
		a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
		cmp.Compare(a.pod.UID, b.pod.UID))
}

// room finds a node that has opened for a pod and has room for it beside the pods that were woken
// before, or would have room without the pods that rank after it. Openings that have closed again
// are forgotten.
func (w *Requeuer) room(s ledger.Snapshot, entry *waiting, taken *ledger.Delta) (ledger.NodeName, bool) {
	w.mu.Lock()
	open := entry.open
	w.mu.Unlock()
	request := w.asked(s, entry).Request
	without := s
	if !taken.Empty() {
		others := taken.Clone()
		delete(others.Added, string(entry.pod.UID))
		without = s.With(others)
	}
	now, still := w.config.Now(), openings{}
	a, priority := w.config.Arbiter, corev1helpers.PodPriority(entry.pod)
	has := func(s ledger.Snapshot, n ledger.NodeName) bool {
		return a.Fit(s, request, n, now).Allowed() || mayEvict(entry.pod) && a.FitsByEviction(s, request, priority, n, now)
	}
	for n := range open.among(s) {
		if !has(s, n) {
			continue
		}
		if has(without, n) {
			return n, true
		}
		if still.anywhere = open.anywhere; !open.anywhere {
			still.nodes = append(still.nodes, n)
		}
	}
	w.mu.Lock()
	entry.open = still
	w.mu.Unlock()
	return "", false
}

// among yields the nodes that have opened.
func (o openings) among(s ledger.Snapshot) func(func(ledger.NodeName) bool) {
	return func(yield func(ledger.NodeName) bool) {
		if !o.anywhere {
			slices.Values(o.nodes)(yield)
			return
		}
		for n := range s.Nodes() {
			if !yield(n.Name) {
				return
			}
		}
	}
}

// call wakes a pod, and keeps room for it.
func (w *Requeuer) call(ctx context.Context, entry *waiting, node ledger.NodeName) {
	w.mu.Lock()
	entry.open = openings{}
	entry.turn = turn{node, w.config.Now().Add(w.config.Turn)}
	w.mu.Unlock()
	w.nextAt(w.config.Turn) // unused room then goes to the next pod
	w.wake(ctx, entry)
}

// nextAt has the line looked at after a while. The queue keeps only the first of several times:
// each look asks again for the times that it needs.
func (w *Requeuer) nextAt(d time.Duration) { w.retries.AddAfter(retry{}, d) }

// Rejected notes a failed attempt without an eviction: no plugin keeps the pod from the queue. It
// counts as an attempt even if another plugin refused the pod before Enter. Room that was kept for
// the pod goes to the next pod.
func (w *Requeuer) Rejected(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.pods.all[uid]; entry != nil {
		entry.kept, entry.woken = false, 0
		w.endTurn(entry)
	}
}

// endTurn gives up the room that was kept for a pod; mu is held.
func (w *Requeuer) endTurn(entry *waiting) {
	if entry.turn.node != "" {
		entry.turn = turn{}
		w.next()
	}
}

// next has the line looked at soon.
func (w *Requeuer) next() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}
