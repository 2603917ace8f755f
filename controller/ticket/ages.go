// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"sync"
	"time"
)

// What a ticket has lived is written down ttlSteps times in its life, and not
// more often than every ttlStep: that much a restart may add to it.
const (
	ttlSteps = 10
	ttlStep  = 30 * time.Second
)

// ages knows since when this process has seen a ticket, and which ones it took
// over.
type ages struct {
	mu   sync.Mutex
	seen map[string]age // by the ticket's UID
	took map[string]bool
}

type age struct {
	first  time.Time
	before time.Duration // what earlier processes counted
}

func newAges() *ages { return &ages{seen: map[string]age{}, took: map[string]bool{}} }

// of returns how long a ticket has lived. before counts only the first time.
func (a *ages) of(uid string, before time.Duration, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.seen[uid]; !ok {
		a.seen[uid] = age{now, before}
	}
	return now.Sub(a.seen[uid].first) + a.seen[uid].before
}

func (a *ages) forget(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.seen, uid)
}

func (a *ages) taken(uid string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.took[uid]
}

func (a *ages) take(uid string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took[uid] = true
}
