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

// DefaultTurn is how long room is kept for a silent woken pod.
const DefaultTurn = time.Second

type openings struct {
	anywhere bool // a volume or a policy has changed: any node may do
	nodes    []ledger.NodeName
}

func (o openings) any() bool { return o.anywhere || len(o.nodes) > 0 }

func (o openings) add(others openings) openings {
	o.anywhere = o.anywhere || others.anywhere
	for _, n := range others.nodes {
		if !slices.Contains(o.nodes, n) {
			o.nodes = append(slices.Clip(o.nodes), n)
		}
	}
	return o
}

// turn is a woken pod's room: it counts at the node until it has a node, is refused, or the time is over.
type turn struct {
	node  ledger.NodeName // empty: none
	until time.Time
}

// serveLine wakes pods for opened nodes, in their scheduler's order, as many as there is room for. A pod
// without room waits for the next change, or until a woken pod is refused for another reason.
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
		// The opening of its gate wakes a gated pod.
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

// inOrder is kube-scheduler's order: higher priority, then older.
func inOrder(a, b *waiting) int {
	return cmp.Or(
		cmp.Compare(corev1helpers.PodPriority(b.pod), corev1helpers.PodPriority(a.pod)),
		a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
		cmp.Compare(a.pod.UID, b.pod.UID))
}

// room finds an opened node with room beside the woken pods, or without the pods that rank after it. It
// forgets closed openings.
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

func (w *Requeuer) call(ctx context.Context, entry *waiting, node ledger.NodeName) {
	w.mu.Lock()
	entry.open = openings{}
	entry.turn = turn{node, w.config.Now().Add(w.config.Turn)}
	w.mu.Unlock()
	w.nextAt(w.config.Turn) // unused room then goes to the next pod
	w.wake(ctx, entry)
}

// The queue keeps only the first of several times: each look asks again for its times.
func (w *Requeuer) nextAt(d time.Duration) { w.retries.AddAfter(retry{}, d) }

// Rejected notes a failed attempt without an eviction: no plugin keeps the pod from the queue. It counts
// even if another plugin refused the pod before Enter. The pod's room goes to the next pod.
func (w *Requeuer) Rejected(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.pods.all[uid]; entry != nil {
		entry.kept, entry.woken = false, 0
		w.endTurn(entry)
	}
}

// mu is held.
func (w *Requeuer) endTurn(entry *waiting) {
	if entry.turn.node != "" {
		entry.turn = turn{}
		w.next()
	}
}

func (w *Requeuer) next() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}
