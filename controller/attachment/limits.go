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
// keeps who waits because there are as many as its policy allows. Those at nodes
// that do not answer may never end: they are counted apart, and only keep others
// of their kind waiting.
//
//	Invariant: total[d] counts under[v][n] over the volumes v of driver d and nodes n
type limits struct {
	mu      sync.Mutex
	under   map[ledger.VolumeID]map[ledger.NodeName]bool // whether the node answers
	total   map[string]count
	waiting map[string]map[ledger.VolumeID]bool
}

// count is how many operations of a driver keep a worker: all of them, and those at
// nodes that answer.
type count struct{ all, live int }

func newLimits() *limits {
	return &limits{
		under: map[ledger.VolumeID]map[ledger.NodeName]bool{}, total: map[string]count{},
		waiting: map[string]map[ledger.VolumeID]bool{},
	}
}

// look counts one volume's operations anew, but for those at nodes where a step is in
// flight. It returns the volumes that need not wait any more, and after how long the first of its
// own operations keeps its worker no longer, 0 for as long as it is under way.
func (l *limits) look(s ledger.Snapshot, id ledger.VolumeID, busy map[ledger.NodeName]bool, now time.Time) (free []ledger.VolumeID, again time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.total[id.Driver]
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
	delete(l.waiting[id.Driver], id)
	if after := l.total[id.Driver]; after.all >= before.all && after.live >= before.live {
		return nil, again
	}
	for w := range l.waiting[id.Driver] {
		free = append(free, w)
	}
	delete(l.waiting, id.Driver)
	return free, again
}

// admit returns the steps that may be done now: all but the beginnings of
// attaches and detaches for which the driver has no worker. At a node that answers
// only operations at such nodes are in their way; at another node, all are. Without
// workers nothing is limited. Of the rest it returns those at the first so many nodes.
func (l *limits) admit(s ledger.Snapshot, id ledger.VolumeID, workers, nodes int, steps []arbiter.Step) []arbiter.Step {
	l.mu.Lock()
	defer l.mu.Unlock()
	admitted := make([]arbiter.Step, 0, len(steps))
	at := map[ledger.NodeName]bool{}
	for _, step := range steps {
		if !at[step.Node] && len(at) >= nodes {
			continue
		}
		if step.Do == arbiter.CreateAttachment || step.Do == arbiter.DeleteAttachment {
			live, busy := arbiter.Answers(s.Node(step.Node)), l.total[id.Driver].all
			if live {
				busy = l.total[id.Driver].live
			}
			if workers > 0 && busy >= workers {
				l.wait(id)
				continue
			}
			l.begin(id, step.Node, live)
		}
		at[step.Node] = true
		admitted = append(admitted, step)
	}
	return admitted
}

// waits says whether a volume waits for a worker of its driver.
func (l *limits) waits(id ledger.VolumeID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[id.Driver][id]
}

// wait notes that a volume waits for a worker. It is called with mu held.
func (l *limits) wait(id ledger.VolumeID) {
	if l.waiting[id.Driver] == nil {
		l.waiting[id.Driver] = map[ledger.VolumeID]bool{}
	}
	l.waiting[id.Driver][id] = true
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
	total.all += by
	if live {
		total.live += by
	}
	l.total[driver] = total
}
