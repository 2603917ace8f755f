// SPDX-License-Identifier: Apache-2.0

package work

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// share is how many keys are taken for one of those that can wait: so much of the
// work is always theirs, and they come to an end on the busiest day.
const share = 4

// priorityQueue are the keys that are due, in two rows: first those that something has
// touched, with their tenants in turn, then those that are looked at because
// everything is. A thousand of the latter hold up none of the former.
//
//	Invariant: k is in patient if Add or Later has asked for it since it was last
//	taken, and patient[k] says that only Later has
//	Invariant: late[k] says that k waits in the second row; whatever else is there has left it
type priorityQueue[K comparable] struct {
	tenant func(K) string
	adding sync.Mutex // held by Add and Later, so that neither undoes what the other says

	mu      sync.Mutex
	first   FairRow[K]
	second  []K
	patient map[K]bool
	late    map[K]bool
	taken   int
}

func newPriorityQueue[K comparable](tenant func(K) string) *priorityQueue[K] {
	return &priorityQueue[K]{tenant: tenant, patient: map[K]bool{}, late: map[K]bool{}}
}

// add puts a key into the queue.
func (l *priorityQueue[K]) add(queue workqueue.TypedInterface[K], key K, patient bool) {
	l.adding.Lock()
	defer l.adding.Unlock()
	l.mu.Lock()
	if _, asked := l.patient[key]; !asked || !patient {
		l.patient[key] = patient
	}
	l.mu.Unlock()
	queue.Add(key)
}

// Push implements workqueue.Queue, as do the other methods. The queue's own lock
// is held.
func (l *priorityQueue[K]) Push(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.patient[key] {
		l.second = append(l.second, key)
		l.late[key] = true
		return
	}
	l.first.Push(l.tenant(key), key)
}

// Touch has a key that is already due move up, if somebody is in a hurry.
func (l *priorityQueue[K]) Touch(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.late[key]:
		l.patient[key] = false // it is in the first row
	case !l.patient[key]:
		delete(l.late, key)
		l.first.Push(l.tenant(key), key)
	}
}

// Len is how many keys are due.
func (l *priorityQueue[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first.Len() + len(l.late)
}

// Pop takes the key that is next. There is one.
func (l *priorityQueue[K]) Pop() K {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken++
	if len(l.late) == 0 || l.taken%share != 0 {
		if key, ok := l.first.Pop(); ok {
			delete(l.patient, key)
			return key
		}
	}
	for {
		if key := pop(&l.second); l.late[key] {
			delete(l.late, key)
			delete(l.patient, key)
			return key
		}
	}
}

func pop[K any](row *[]K) K {
	var none K
	key := (*row)[0]
	(*row)[0] = none // the array is still there
	*row = (*row)[1:]
	return key
}
