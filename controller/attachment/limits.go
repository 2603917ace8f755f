// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

// limits counts each driver's attaches and detaches under way, and knows the volumes that wait because
// of the policy's limit. Operations at nodes that do not answer may never end: they are counted apart,
// and only hold up operations of the same kind.
//
//	Invariant: total[d] counts under[v][n] over the volumes v of driver d and nodes n
//	Invariant: after next(d), a volume waits for a worker of d only if all are busy or kept
type limits struct {
	mu    sync.Mutex
	under map[ledger.VolumeID]map[ledger.NodeName]bool // whether the node answers
	total map[string]count
	turns map[string]*turns
}

// count is a driver's operations with a worker: all, and those at answering nodes.
type count struct{ all, live int }

// of counts the operations that block another one, at an answering node or not.
func (c count) of(live bool) int {
	if live {
		return c.live
	}
	return c.all
}

func (c *count) add(live bool, by int) {
	c.all += by
	if live {
		c.live += by
	}
}

func newLimits() *limits {
	return &limits{
		under: map[ledger.VolumeID]map[ledger.NodeName]bool{}, total: map[string]count{}, turns: map[string]*turns{},
	}
}

// look counts a volume's operations again, except at nodes with a step in flight. It returns when the first
// frees its worker; 0: while in flight.
func (l *limits) look(s ledger.Snapshot, id ledger.VolumeID, busy map[ledger.NodeName]bool, now time.Time) (again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.under[id] {
		if !busy[n] {
			l.end(id, n)
		}
	}
	if v := s.Volume(id); v != nil {
		for i := range v.OnNodes {
			place := &v.OnNodes[i]
			if is, left := rules.UnderWay(s, place, now); is && !busy[place.Node] {
				l.begin(id, place.Node, rules.Answers(s.Node(place.Node)))
				again = protocol.Sooner(again, left)
			}
		}
	}
	return again
}

// admit returns the steps that may be done now at the first so many nodes: all except attaches and detaches
// without a worker. At a node that answers, only operations at such nodes block; at another node all do,
// or, in the volume's turn for that, only those at such other nodes. Without a turn a volume begins nothing
// while others wait, not even with its own former worker. Without workers nothing is limited.
//
// Workers kept for others are not free. The volume's turn and wait end, unless a step has no worker, or was
// waited for and is left out because of its node. After a turn it waits behind its tenant's others.
//
// If it waits first, admit also returns the volumes whose end would give it a worker.
func (l *limits) admit(s ledger.Snapshot, id ledger.VolumeID, workers, nodes int, steps []rules.Step) (admitted []rules.Step, holders []ledger.VolumeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	turns := l.of(id.Driver)
	first := !turns.anybodyWaits()
	beginning := beginning{turns: turns, workers: workers}
	beginning.turn, beginning.has = turns.end(id)
	admitted = make([]rules.Step, 0, len(steps))
	at := map[ledger.NodeName]bool{}
	waits, answers, sought, leftOut := false, false, false, false
	for _, step := range steps {
		begins := step.Kind == rules.CreateAttachment || step.Kind == rules.DeleteAttachment
		if !at[step.Node] && len(at) >= nodes {
			leftOut = leftOut || begins
			continue
		}
		if begins {
			live := rules.Answers(s.Node(step.Node))
			if !l.keepsOwn(id, step.Node) && !beginning.may(l.total[id.Driver], id, live) {
				waits, answers = true, answers || live
				sought = sought || step.Kind == rules.CreateAttachment || step.Urgent
				continue
			}
			l.begin(id, step.Node, live)
		}
		at[step.Node] = true
		admitted = append(admitted, step)
	}
	switch {
	case waits:
		turns.wait(id, tenant(s, id, sought), answers)
	case !leftOut:
		turns.leave(id)
	}
	if waits && first {
		holders = l.keeping(id.Driver, workers)
	}
	return admitted, holders
}

// unsought marks a namespace's volumes without waiters.
const unsought = "/unsought"

// tenant is the namespace. Volumes that only leave, without a waiter, take turns like another namespace's.
func tenant(s ledger.Snapshot, id ledger.VolumeID, sought bool) string {
	if sought {
		return namespace(s, id)
	}
	return namespace(s, id) + unsought
}

// keepsOwn: an operation that replaces the present one needs no second worker. The caller holds mu.
func (l *limits) keepsOwn(id ledger.VolumeID, n ledger.NodeName) bool {
	_, keeps := l.under[id][n]
	return keeps
}

// beginning decides on a volume's operations one by one; a turn covers the first.
type beginning struct {
	turns     *turns
	workers   int
	turn, has bool // its turn, and whether at a node that answers
}

func (b *beginning) may(busy count, id ledger.VolumeID, live bool) bool {
	covered := b.has && b.turn == live
	if !b.turns.room(busy, b.workers, live, covered && !live) {
		return false
	}
	if covered {
		b.has = false
		return true
	}
	if b.workers > 0 && b.turns.othersWait(id, live) {
		return false
	}
	if live {
		b.turns.pass()
	}
	return true
}

// next returns the volumes with a new turn: each must be looked at and its steps admitted, even if it has
// none.
func (l *limits) next(driver string, workers int) []ledger.VolumeID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(driver).next(l.total[driver], workers)
}

func (l *limits) waits(id ledger.VolumeID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(id.Driver).waits(id)
}

// keepsWaiting says whether another volume waits for this volume's worker.
func (l *limits) keepsWaiting(id ledger.VolumeID, workers int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.helps(id, workers)
}

// keeping are a driver's volumes with a sought worker. The caller holds mu.
func (l *limits) keeping(driver string, workers int) (ids []ledger.VolumeID) {
	for id := range l.under {
		if id.Driver == driver && l.helps(id, workers) {
			ids = append(ids, id)
		}
	}
	return ids
}

// helps: the end of a volume's operation gives another a worker. The caller holds mu.
func (l *limits) helps(id ledger.VolumeID, workers int) bool {
	for _, live := range l.under[id] {
		if l.of(id.Driver).helps(l.total[id.Driver], workers, id, live) {
			return true
		}
	}
	return false
}

// of is called with mu held.
func (l *limits) of(driver string) *turns {
	if l.turns[driver] == nil {
		l.turns[driver] = newTurns()
	}
	return l.turns[driver]
}

// begin replaces the node's count. The caller holds mu.
func (l *limits) begin(id ledger.VolumeID, n ledger.NodeName, live bool) {
	l.end(id, n)
	if l.under[id] == nil {
		l.under[id] = map[ledger.NodeName]bool{}
	}
	l.under[id][n] = live
	l.count(id.Driver, live, 1)
}

// end is called with mu held.
func (l *limits) end(id ledger.VolumeID, n ledger.NodeName) {
	live, is := l.under[id][n]
	if !is {
		return
	}
	l.count(id.Driver, live, -1)
	delete(l.under[id], n)
	if len(l.under[id]) == 0 {
		delete(l.under, id)
	}
}

func (l *limits) count(driver string, live bool, by int) {
	total := l.total[driver]
	total.add(live, by)
	l.total[driver] = total
}
