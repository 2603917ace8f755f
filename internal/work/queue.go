// SPDX-License-Identifier: Apache-2.0

// Package work runs a level-triggered decision for each of many keys: at most
// one at a time for each key, at once when the key is touched, and later when
// time or a failure asks for it. It does no I/O of its own.
package work

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/moorage-dev/moorage/internal/flow"
)

// Queue runs Process for each key that is added. All methods are safe for
// parallel use.
type Queue[K comparable] struct {
	name    string
	process func(context.Context, K) (time.Duration, error)
	queue   workqueue.TypedInterface[K]         // of what is due
	later   workqueue.TypedDelayingInterface[K] // puts a key into queue when its time has come
	due     *priorityQueue[K]                   // in what order queue is taken from

	mu       sync.Mutex
	attempts map[K]flow.Attempts
}

// New returns a queue. process decides on a key and does what follows; it
// returns after how long the key is to be looked at again even if nothing
// touches it, 0 for never. With an error, too: then it is also the longest pause.
func New[K comparable](name string, process func(context.Context, K) (time.Duration, error)) *Queue[K] {
	return NewInTurns(name, func(K) string { return "" }, process)
}

// NewInTurns returns a queue that takes the keys of different tenants in turn. of says whose a key is: it is
// called with locks held, and must not call the queue.
func NewInTurns[K comparable](name string, of func(K) (tenant string), process func(context.Context, K) (time.Duration, error)) *Queue[K] {
	return NewFair(name, func(key K) (string, Rank) { return of(key), Touched }, process)
}

// NewFair returns a queue that takes the keys of different tenants in turn. of says of a key that is
// due whose it is, and how soon it is processed. It is called with locks held, and must not call the
// queue.
func NewFair[K comparable](name string, of func(K) (tenant string, as Rank), process func(context.Context, K) (time.Duration, error)) *Queue[K] {
	due := newPriorityQueue(of)
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: due})
	return &Queue[K]{
		name: name, process: process, due: due, queue: queue,
		later:    workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Queue: timed[K]{queue, due}}),
		attempts: map[K]flow.Attempts{},
	}
}

// timed is the queue behind a delaying one: it is given a key when the time of that has come.
type timed[K comparable] struct {
	workqueue.TypedInterface[K]
	due *priorityQueue[K]
}

// Add implements workqueue.TypedInterface. A key whose time has come is touched, whatever else has asked
// for it.
func (q timed[K]) Add(key K) { q.due.add(q.TypedInterface, key, Touched) }

// Add has a key processed at once, also one that waits.
func (q *Queue[K]) Add(key K) { q.due.add(q.queue, key, Touched) }

// First has a key processed before others, of which those that something has touched and those that
// can wait keep every fourth turn.
func (q *Queue[K]) First(key K) { q.due.add(q.queue, key, First) }

// Later has a key processed that nothing has touched, after those that something
// has, unless it is one of them.
func (q *Queue[K]) Later(key K) { q.due.add(q.queue, key, Patient) }

// MoveUp has a key that is due, and belongs further in front by now than when it was added, be processed
// in its place. It does nothing to one that is not due.
func (q *Queue[K]) MoveUp(key K) { q.due.Touch(key) }

// Len is how many keys are due, without those that are being processed.
func (q *Queue[K]) Len() int { return q.queue.Len() }

// Run processes keys until ctx is done, and returns when the last one is.
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
		after = flow.Sooner(after, q.failed(key, err))
		Log(ctx, q.name, key, err, after)
	} else {
		q.succeeded(key)
	}
	if after > 0 {
		q.later.AddAfter(key, after)
	}
	return true
}

// failed counts an attempt and says how long to pause before the next.
func (q *Queue[K]) failed(key K, err error) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.attempts[key]
	pause := a.Fail(flow.AttemptEnd(err), Spread)
	q.attempts[key] = a
	return pause
}

func (q *Queue[K]) succeeded(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.attempts, key)
}
