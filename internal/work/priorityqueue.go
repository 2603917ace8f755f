// SPDX-License-Identifier: Apache-2.0

package work

import (
	"sync"

	"k8s.io/client-go/util/workqueue"

	"github.com/moorage-dev/moorage/internal/fair"
)

// share is the keys taken for each patient key, so that patient keys always progress.
const share = 4

// Rank is how soon a key is processed.
type Rank int

const (
	First   Rank = iota // other work waits for it
	Ahead               // before other touched keys
	Touched             // something has touched it
	Patient             // untouched, in a check of everything
	ranks
)

// priorityQueue has the due keys, in a row for each rank. In the rows of touched keys tenants take
// turns. A thousand patient keys hold up none of the others, and get their share of the work all the
// same (order).
//
//	Invariant: asked[k] is the first rank of k's additions since it was last taken
//	Invariant: k is in one row at most
type priorityQueue[K comparable] struct {
	of     func(K) (tenant string, as Rank) // of touched keys
	adding sync.Mutex                       // two additions must not undo each other

	mu    sync.Mutex
	rows  [ranks]fair.Row[K]
	asked map[K]Rank
	taken int
}

func newPriorityQueue[K comparable](of func(K) (string, Rank)) *priorityQueue[K] {
	return &priorityQueue[K]{of: of, asked: map[K]Rank{}}
}

func (l *priorityQueue[K]) add(queue workqueue.TypedInterface[K], key K, as Rank) {
	l.adding.Lock()
	defer l.adding.Unlock()
	l.mu.Lock()
	if was, asked := l.asked[key]; !asked || as < was {
		l.asked[key] = as
	}
	l.mu.Unlock()
	queue.Add(key)
}

// The queue's own lock is held.
func (l *priorityQueue[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	as, tenant := l.place(key)
	l.rows[as].Push(tenant, key)
}

// mu is held.
func (l *priorityQueue[K]) place(key K) (as Rank, tenant string) {
	as, asked := l.asked[key]
	if asked && as != Touched {
		return as, ""
	}
	tenant, as = l.of(key)
	return as, tenant
}

func (l *priorityQueue[K]) Touch(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	as, tenant := l.place(key)
	for later := as + 1; later < ranks; later++ {
		if l.rows[later].Has(key) {
			l.rows[later].Remove(key)
			l.rows[as].Push(tenant, key)
		}
	}
}

func (l *priorityQueue[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := 0
	for i := range l.rows {
		due += l.rows[i].Len()
	}
	return due
}

// If present, one of four keys is a patient key, and one a touched key that does not go ahead.
func (l *priorityQueue[K]) order() [ranks]Rank {
	switch l.taken % share {
	case 0:
		return [ranks]Rank{Patient, First, Ahead, Touched}
	case 1:
		return [ranks]Rank{Touched, First, Ahead, Patient}
	}
	return [ranks]Rank{First, Ahead, Touched, Patient}
}

// Pop is called only if there is a key.
func (l *priorityQueue[K]) Pop() K {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken++
	var key K
	for _, as := range l.order() {
		if first, due := l.rows[as].Pop(); due {
			key = first
			break
		}
	}
	delete(l.asked, key)
	return key
}
