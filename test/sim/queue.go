// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/moorage-dev/moorage/internal/flow"
)

// whole has every pause be the longest that a real one would be.
func whole(pause time.Duration) time.Duration { return pause }

// ended is how a request of an observer or a scheduler ended.
func ended(err error) flow.End {
	if err != nil {
		return flow.Failed
	}
	return flow.Finished
}

// queue is internal/work's queue as data: at most one run for each
// key at a time, at once when it is touched, later when time or a failure asks
// for it.
type queue[K comparable] struct {
	keys    []K // in the order in which they were first added
	items   map[K]*item
	timeNow func() time.Time
}

type item struct {
	ready   bool
	running bool
	due     time.Time // zero: none
	tries   flow.Attempts
}

func newQueue[K comparable](now func() time.Time) *queue[K] {
	return &queue[K]{items: map[K]*item{}, timeNow: now}
}

func (q *queue[K]) item(k K) *item {
	if q.items[k] == nil {
		q.items[k] = &item{}
		q.keys = append(q.keys, k)
	}
	return q.items[k]
}

// add has a key processed at once, also one that waits.
func (q *queue[K]) add(k K) { q.item(k).ready = true }

// startable says whether a key can be processed now.
func (q *queue[K]) startable(k K) bool {
	i := q.items[k]
	return i != nil && !i.running && (i.ready || !i.due.IsZero() && !q.timeNow().Before(i.due))
}

// start begins to process a key.
func (q *queue[K]) start(k K) bool {
	if !q.startable(k) {
		return false
	}
	i := q.items[k]
	i.ready, i.running, i.due = false, true, time.Time{}
	return true
}

// done ends what start began. after is when to look again without a reason.
func (q *queue[K]) done(k K, after time.Duration, end flow.End) {
	i := q.items[k]
	i.running = false
	if end == flow.Finished {
		i.tries = flow.Attempts{}
	} else {
		after = i.tries.Fail(end, whole)
	}
	if after > 0 {
		i.due = earlier(i.due, q.timeNow().Add(after))
	}
}

// offer calls add for each key that can be processed.
func (q *queue[K]) offer(add func(K)) {
	for _, k := range q.keys {
		if q.startable(k) {
			add(k)
		}
	}
}

// next is when the next key that waits is due.
func (q *queue[K]) next() time.Time {
	var t time.Time
	for _, k := range q.keys {
		if i := q.items[k]; !i.running && !i.ready {
			t = earlier(t, i.due)
		}
	}
	return t
}
