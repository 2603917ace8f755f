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

// maxAsks is at how many nodes it is looked for tickets that are to yield to one pod.
const maxAsks = 16

// Refusals are the nodes that an attempt to place a pod was refused for its volumes. Safe for parallel
// use; nil notes nothing.
type Refusals struct {
	mu    sync.Mutex
	some  bool
	nodes []ledger.NodeName // where slots are missing
	asks  []tickets.Ask
}

// Add notes a refusal: all that the scheduler has asked before let the pod have the node.
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

// looks says whether more tickets are looked for.
func (f *Refusals) looks() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asks) < maxAsks
}

// Refused notes that a pod waits for its volumes: what comes free is kept for it for a while, and the
// tickets that alone are in its way are asked to yield. always is true where it is known to wait
// though no node was refused.
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
