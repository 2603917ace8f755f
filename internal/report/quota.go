// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// The quotas of a namespace's events for tickets, operations and refused writes: a number at once, and one
// more each time. The recorder drops events beyond its queue of 1000, for all tenants.
const (
	eventsAtOnce    = 10
	eventsEach      = 5 * time.Second
	quotaNamespaces = 1024 // the longest unused is dropped first, and starts again
)

// quotas are counted apart: a ticket's end is reported after many changes.
type quotas struct{ changes, ends, operations, refused *quota }

func newQuotas() quotas { return quotas{newQuota(), newQuota(), newQuota(), newQuota()} }

// quota bounds each namespace's events. It is safe for parallel use.
type quota struct {
	mu   sync.Mutex
	full *lru.Cache // of the namespaces: time.Time, when it has all of its quota again
}

func newQuota() *quota { return &quota{full: lru.New(quotaNamespaces)} }

func (q *quota) take(namespace string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	full := now
	if known, ok := q.full.Get(namespace); ok && known.(time.Time).After(now) {
		full = known.(time.Time)
	}
	if full.Sub(now) > (eventsAtOnce-1)*eventsEach {
		return false
	}
	q.full.Add(namespace, full.Add(eventsEach))
	return true
}
