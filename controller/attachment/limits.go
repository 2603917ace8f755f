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
// volume has its turn for that, only those at such others. Without workers nothing is
// limited. Of the rest it returns those at the first so many nodes.
//
// Workers that are kept for others are not free. With this the volume's own turn ends, and
// so does its wait, unless there is a step that has no worker. Whoever had its turn waits behind
// all others of its namespace.
func (l *limits) admit(s ledger.Snapshot, id ledger.VolumeID, workers, nodes int, steps []arbiter.Step) []arbiter.Step {
	l.mu.Lock()
	defer l.mu.Unlock()
	turns := l.of(id.Driver)
	turn, has := turns.end(id)
	apart := has && !turn // it has a worker apart from those at nodes that answer
	admitted := make([]arbiter.Step, 0, len(steps))
	at := map[ledger.NodeName]bool{}
	waits, answers := false, false
	for _, step := range steps {
		if !at[step.Node] && len(at) >= nodes {
			continue
		}
		if step.Do == arbiter.CreateAttachment || step.Do == arbiter.DeleteAttachment {
			live := arbiter.Answers(s.Node(step.Node))
			if !turns.room(l.total[id.Driver], workers, live, apart) {
				waits, answers = true, answers || live
				continue
			}
			apart = apart && live
			l.begin(id, step.Node, live)
		}
		at[step.Node] = true
		admitted = append(admitted, step)
	}
	if waits {
		turns.wait(id, namespace(s, id), answers)
	} else {
		turns.leave(id)
	}
	return admitted
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
func (l *limits) keepsWaiting(id ledger.VolumeID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, live := range l.under[id] {
		if l.of(id.Driver).othersWait(id, live) {
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
