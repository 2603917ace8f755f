// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// The quotas of a namespace's events for its tickets, operations, and pods with refused writes: so
// many at once, and one more each time. The recorder has one queue of 1000 for all events, and
// drops the excess: without quotas a tenant's many tickets could drop others' events.
const (
	eventsAtOnce    = 10
	eventsEach      = 5 * time.Second
	quotaNamespaces = 1024 // kept namespaces; the longest unused goes first, and starts again
)

// quotas are counted apart: the end of a ticket is reported though it has changed often.
type quotas struct{ changes, ends, operations, refused *quota }

func newQuotas() quotas { return quotas{newQuota(), newQuota(), newQuota(), newQuota()} }

// quota bounds how many events each namespace can have. It is safe for parallel use.
type quota struct {
	mu   sync.Mutex
	full *lru.Cache // of the namespaces: time.Time, when it has all of its quota again
}

func newQuota() *quota { return &quota{full: lru.New(quotaNamespaces)} }

// take says whether a namespace can have an event now, and counts it.
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
