// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/moorage-dev/moorage/internal/protocol"
)

func whole(pause time.Duration) time.Duration { return pause }

// queue is internal/work's queue as data: at most one run per key at a time.
type queue[K comparable] struct {
	items   []*item[K] // in the order of their first addition
	of      map[K]*item[K]
	timeNow func() time.Time
	arg     func(K) string // a key's name in an action
}

type item[K comparable] struct {
	arg     string // its key's name in an action
	ready   bool
	running bool
	due     time.Time // zero: none
	tries   protocol.Attempts
}

func newQueue[K comparable](now func() time.Time, arg func(K) string) *queue[K] {
	return &queue[K]{of: map[K]*item[K]{}, timeNow: now, arg: arg}
}

func (q *queue[K]) item(k K) *item[K] {
	i := q.of[k]
	if i == nil {
		i = &item[K]{arg: q.arg(k)}
		q.of[k] = i
		q.items = append(q.items, i)
	}
	return i
}

func (q *queue[K]) add(k K) { q.item(k).ready = true }

func (i *item[K]) startable(now time.Time) bool {
	return !i.running && (i.ready || !i.due.IsZero() && !now.Before(i.due))
}

func (q *queue[K]) start(k K) bool {
	i := q.of[k]
	if i == nil || !i.startable(q.timeNow()) {
		return false
	}
	i.ready, i.running, i.due = false, true, time.Time{}
	return true
}

func (q *queue[K]) done(k K, after time.Duration, end protocol.End) {
	i := q.of[k]
	i.running = false
	if end == protocol.Finished {
		i.tries = protocol.Attempts{}
	} else {
		after = i.tries.Fail(end, whole)
	}
	if after > 0 {
		i.due = earlier(i.due, q.timeNow().Add(after))
	}
}

func (q *queue[K]) offer(m *menu, weight int, who, what string) {
	now := q.timeNow()
	for _, i := range q.items {
		if i.startable(now) {
			m.add(weight, who, what, i.arg)
		}
	}
}

func (q *queue[K]) next() time.Time {
	var t time.Time
	for _, i := range q.items {
		if !i.running && !i.ready {
			t = earlier(t, i.due)
		}
	}
	return t
}
