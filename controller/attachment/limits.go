// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// limits counts each driver's attaches and detaches that are under way, and
// knows who waits because there are as many as its policy allows. Those at nodes
// that do not answer may never end: they are counted apart, and only keep others
// of their kind waiting.
//
//	Invariant: total[d] counts under[v][n] over the volumes v of driver d and nodes n
//	Invariant: after next(d), somebody waits for a worker of d only if all are busy or kept
type limits struct {
	mu    sync.Mutex
	under map[ledger.VolumeID]map[ledger.NodeName]bool // whether the node answers
	total map[string]count
	turns map[string]*turns
}

// count is how many operations of a driver keep a worker: all of them, and those at
// nodes that answer.
type count struct{ all, live int }

// of is how many stand in the way of one at a node that answers, or of one at another.
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

// look counts one volume's operations anew, but for those at nodes where a step is in
// flight. It returns after how long the first of them keeps its worker no longer, 0 for as
// long as it is under way.
func (l *limits) look(s ledger.Snapshot, id ledger.VolumeID, busy map[ledger.NodeName]bool, now time.Time) (again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.under[id] {
		if !busy[n] {
			l.end(id, n)
		}
	}
	if v := s.Volume(id); v != nil {
		for i := range v.NodeVolumes {
			place := &v.NodeVolumes[i]
			if is, left := arbiter.UnderWay(s, place, now); is && !busy[place.Node] {
				l.begin(id, place.Node, arbiter.Answers(s.Node(place.Node)))
				again = flow.Sooner(again, left)
			}
		}
	}
	return again
}

// admit returns the steps that may be done now: all but the beginnings of
// attaches and detaches for which the driver has no worker. At a node that answers
// only operations at such nodes are in their way; at another node all are, or, where the
// volume has its turn for that, only those at such others. A worker that is free is for who waits
// for one already: without a turn a volume begins nothing while others wait, be the worker one that
// it had itself. Without workers nothing is limited. Of the rest it returns those at the first so
// many nodes.
//
// Workers that are kept for others are not free. With this the volume's own turn ends, and
// so does its wait, unless there is a step that has no worker, or one that it waited for and that is
// left out because of its node. Whoever had its turn waits behind all others of its tenant.
//
// Where it is the first that waits it also returns whose end would give it a worker: they were due,
// perhaps, behind others before anybody waited for them.
func (l *limits) admit(s ledger.Snapshot, id ledger.VolumeID, workers, nodes int, steps []arbiter.Step) (admitted []arbiter.Step, holders []ledger.VolumeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	turns := l.of(id.Driver)
	first := !turns.anybodyWaits()
	beginning := beginning{turns: turns, workers: workers}
	beginning.turn, beginning.has = turns.end(id)
	admitted = make([]arbiter.Step, 0, len(steps))
	at := map[ledger.NodeName]bool{}
	waits, answers, sought, leftOut := false, false, false, false
	for _, step := range steps {
		begins := step.Do == arbiter.CreateAttachment || step.Do == arbiter.DeleteAttachment
		if !at[step.Node] && len(at) >= nodes {
			leftOut = leftOut || begins
			continue
		}
		if begins {
			live := arbiter.Answers(s.Node(step.Node))
			if !l.keepsOwn(id, step.Node) && !beginning.may(l.total[id.Driver], id, live) {
				waits, answers = true, answers || live
				sought = sought || step.Do == arbiter.CreateAttachment || step.Urgent
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

// unsought marks a namespace whose volumes nobody waits for.
const unsought = "/unsought"

// tenant is as whose a volume takes turns: its namespace's. Those that are only to leave their nodes, and that
// nobody waits for, take turns with those of their namespace that somebody waits for, as another one's would.
func tenant(s ledger.Snapshot, id ledger.VolumeID, sought bool) string {
	if sought {
		return namespace(s, id)
	}
	return namespace(s, id) + unsought
}

// keepsOwn says whether a volume has a worker at a node already: what takes the place of the operation that is
// under way there needs no other one. It is called with mu held.
func (l *limits) keepsOwn(id ledger.VolumeID, n ledger.NodeName) bool {
	_, keeps := l.under[id][n]
	return keeps
}

// beginning says whether a volume may begin one operation after the other, of which a turn covers the
// first.
type beginning struct {
	turns     *turns
	workers   int
	turn, has bool // whether it has its turn, and whether at a node that answers
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

// next returns the volumes of a driver whose turn it is from now on: each is to be looked at,
// and then to be admitted what it does, be it nothing.
func (l *limits) next(driver string, workers int) []ledger.VolumeID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(driver).next(l.total[driver], workers)
}

// waits says whether a volume waits for a worker of its driver.
func (l *limits) waits(id ledger.VolumeID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(id.Driver).waits(id)
}

// keepsWaiting says whether a volume has a worker of its driver for which another waits.
func (l *limits) keepsWaiting(id ledger.VolumeID, workers int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.helps(id, workers)
}

// keeping are the volumes of a driver that keep a worker for which another waits. It is called with
// mu held.
func (l *limits) keeping(driver string, workers int) (ids []ledger.VolumeID) {
	for id := range l.under {
		if id.Driver == driver && l.helps(id, workers) {
			ids = append(ids, id)
		}
	}
	return ids
}

// helps says whether another volume has a worker once one operation of a volume has ended. It is called
// with mu held.
func (l *limits) helps(id ledger.VolumeID, workers int) bool {
	for _, live := range l.under[id] {
		if l.of(id.Driver).helps(l.total[id.Driver], workers, id, live) {
			return true
		}
	}
	return false
}

// of is who waits for a driver. It is called with mu held.
func (l *limits) of(driver string) *turns {
	if l.turns[driver] == nil {
		l.turns[driver] = newTurns()
	}
	return l.turns[driver]
}

// begin counts an operation at a node, in the place of one that is counted there. It
// is called with mu held.
func (l *limits) begin(id ledger.VolumeID, n ledger.NodeName, live bool) {
	l.end(id, n)
	if l.under[id] == nil {
		l.under[id] = map[ledger.NodeName]bool{}
	}
	l.under[id][n] = live
	l.count(id.Driver, live, 1)
}

// end no longer counts what is under way at a node. It is called with mu held.
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
