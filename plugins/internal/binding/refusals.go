// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"slices"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/tickets"
)

// maxAsks limits the nodes searched for tickets that must yield.
const maxAsks = 16

// Refusals are the nodes refused to an attempt because of volumes. Safe for parallel use; nil notes
// nothing.
type Refusals struct {
	mu    sync.Mutex
	some  bool
	nodes []ledger.NodeName // where slots are missing
	asks  []tickets.Ask
}

// Add notes a refusal at a node that all earlier checks of the scheduler allow.
func (f *Refusals) Add(a rules.Arbiter, s ledger.Snapshot, r rules.Request, n ledger.NodeName, v rules.Verdict, now time.Time) {
	if f == nil || v.Allowed() {
		return
	}
	var asks []tickets.Ask
	if slices.ContainsFunc(v.Reasons, func(reason rules.Reason) bool { return reason.Who.Ticket }) && f.looks() {
		asks = tickets.Asks(a, s, r, n, now)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.some = true
	if slices.ContainsFunc(v.Reasons, func(reason rules.Reason) bool { return reason.Code == rules.NoFreeSlot }) {
		f.nodes = append(f.nodes, n)
	}
	f.asks = append(f.asks, asks...)
}

func (f *Refusals) looks() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asks) < maxAsks
}

// Refused notes that a pod waits for its volumes: free ones are kept for it for a while, and the tickets
// that alone block it are asked to yield. always: it waits even if no node was refused.
func (p *Placer) Refused(pod ledger.Pod, f *Refusals, always bool) {
	if f == nil {
		f = &Refusals{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.some || always {
		p.Waits.Note(p.Now(), pod, f.nodes, f.asks)
	}
}
