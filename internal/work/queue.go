// SPDX-License-Identifier: Apache-2.0

// Package work runs a level-triggered decision for each of many keys: at most one at a time per key, at
// once when the key is touched, and later for time or a failure. It does no I/O.
package work

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/moorage-dev/moorage/internal/protocol"
)

// Queue runs process for each added key. Safe for parallel use.
type Queue[K comparable] struct {
	name    string
	process func(context.Context, K) (time.Duration, error)
	queue   workqueue.TypedInterface[K]         // due keys
	later   workqueue.TypedDelayingInterface[K] // moves a key into queue at its time
	due     *priorityQueue[K]                   // the order of queue

	mu       sync.Mutex
	attempts map[K]protocol.Attempts
}

// New returns a queue. process returns the time until the key's next run without a touch, 0: never. With an
// error it is also the longest pause.
func New[K comparable](name string, process func(context.Context, K) (time.Duration, error)) *Queue[K] {
	return NewInTurns(name, func(K) string { return "" }, process)
}

// NewInTurns takes tenants' keys in turn. of is called with locks held, and must not call the queue.
func NewInTurns[K comparable](name string, of func(K) (tenant string), process func(context.Context, K) (time.Duration, error)) *Queue[K] {
	return NewFair(name, func(key K) (string, Rank) { return of(key), Touched }, process)
}

// NewFair takes tenants' keys in turn, by rank. of is called with locks held, and must not call the queue.
func NewFair[K comparable](name string, of func(K) (tenant string, as Rank), process func(context.Context, K) (time.Duration, error)) *Queue[K] {
	due := newPriorityQueue(of)
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: due})
	return &Queue[K]{
		name: name, process: process, due: due, queue: queue,
		later:    workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Queue: timed[K]{queue, due}}),
		attempts: map[K]protocol.Attempts{},
	}
}

type timed[K comparable] struct {
	workqueue.TypedInterface[K]
	due *priorityQueue[K]
}

func (q timed[K]) Add(key K) { q.due.add(q.TypedInterface, key, Touched) }

// Add has a key processed at once, also during its wait.
func (q *Queue[K]) Add(key K) { q.due.add(q.queue, key, Touched) }

// First puts a key before others; touched and patient keys keep every fourth turn.
func (q *Queue[K]) First(key K) { q.due.add(q.queue, key, First) }

// Later has an untouched key processed after the touched keys.
func (q *Queue[K]) Later(key K) { q.due.add(q.queue, key, Patient) }

// MoveUp moves a due key to its new, higher rank. It ignores other keys.
func (q *Queue[K]) MoveUp(key K) { q.due.Touch(key) }

// Len counts the due keys, without those in process.
func (q *Queue[K]) Len() int { return q.queue.Len() }

// Run processes keys until ctx is done, and returns after the last.
func (q *Queue[K]) Run(ctx context.Context, workers int) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for q.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	q.later.ShutDown() // and with it queue
	running.Wait()
}

func (q *Queue[K]) next(ctx context.Context) bool {
	key, shutdown := q.queue.Get()
	if shutdown {
		return false
	}
	defer q.queue.Done(key)
	if ctx.Err() != nil {
		return true // empty the queue
	}
	after, err := q.process(ctx, key)
	if err != nil && ctx.Err() == nil {
		after = protocol.Sooner(after, q.failed(key, err))
		Log(ctx, q.name, key, err, after)
	} else {
		q.succeeded(key)
	}
	if after > 0 {
		q.later.AddAfter(key, after)
	}
	return true
}

func (q *Queue[K]) failed(key K, err error) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.attempts[key]
	pause := a.Fail(protocol.AttemptEnd(err), Spread)
	q.attempts[key] = a
	return pause
}

func (q *Queue[K]) succeeded(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.attempts, key)
}
