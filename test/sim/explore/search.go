// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

type Report struct {
	States      int
	Transitions int
	Settled     int  // states at rest
	Circling    int  // states from which the steps may never end
	Complete    bool // all states were expanded
	Fault       string
	Path        []string // the moves to it
}

func (r Report) String() string {
	text := fmt.Sprintf("%d states, %d transitions, %d settled, %d circling, complete %v", r.States, r.Transitions, r.Settled, r.Circling, r.Complete)
	if r.Fault != "" {
		text += "\n" + r.Fault + "\n  " + strings.Join(r.Path, "\n  ")
	}
	return text
}

type trail struct {
	parent uint32
	move   uint16
}

type failure struct {
	fault string
	at    uint32
	more  string
}

type search struct {
	config Config
	limit  uint32
	listen func(states int)
	known  *table
	pool   *pool
	count  atomic.Uint32 // states
	trails []trail       // after the merge
	graph  graph
	report Report

	mu     sync.Mutex
	failed *failure
}

const progress = 1_000_000

// Nearly all memory is garbage at once, and the rest has no pointers.
const collection = 800

// listen may be nil. The total does not depend on the workers' order; the first of several faults does.
func Search(config Config, limit int, listen func(states int)) Report {
	defer debug.SetGCPercent(debug.SetGCPercent(collection))
	workers := make([]*worker, runtime.GOMAXPROCS(0))
	x := &search{config: config, limit: uint32(min(limit, 1<<32-1)), listen: listen, known: newTable(), pool: newPool(len(workers))}
	for i := range workers {
		workers[i] = &worker{x: x, room: scratch{left: map[uint64][2]queue{}}}
	}
	first := begin(config)
	workers[0].enter(first, 0, 0)
	x.pool.give(open{first, 0})
	var running sync.WaitGroup
	for _, w := range workers {
		running.Go(w.run)
	}
	running.Wait()
	x.gather(workers)
	switch {
	case x.failed != nil:
		x.report.Fault, x.report.Path = x.failed.fault, x.path(x.failed.at, x.failed.more)
	case x.count.Load() < x.limit:
		x.report.Complete = true
		x.circles()
	}
	return x.report
}

func (x *search) next() uint32 {
	n := x.count.Add(1)
	if n >= x.limit {
		x.pool.end()
	}
	if x.listen != nil && n%progress == 0 {
		x.listen(int(n))
	}
	return n - 1
}

func (x *search) fail(f failure) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed = &f
	}
	x.pool.end()
}

func (x *search) gather(workers []*worker) {
	n := int(x.count.Load())
	x.report.States = n
	x.trails, x.graph.states = make([]trail, n), n
	for _, w := range workers {
		x.report.Transitions += w.transitions
		x.report.Settled += w.settled
		for _, f := range w.found {
			x.trails[f.index] = f.trail
		}
		x.graph.steps = append(x.graph.steps, w.steps...)
		w.found, w.steps, w.stack = nil, nil, nil
	}
}

func (x *search) circles() {
	x.graph.index()
	ends := x.graph.ending()
	for _, e := range ends {
		if !e {
			x.report.Circling++
		}
	}
	if x.report.Circling > 0 {
		at := uint32(slices.Index(ends, false))
		x.report.Fault, x.report.Path = "it may go on for ever", append(x.path(at), x.round(at, ends)...)
	}
}

func (x *search) round(at uint32, ends []bool) []string {
	s := x.play(at)
	passed := map[uint32]bool{}
	var names []string
	for !passed[at] {
		passed[at] = true
		for _, m := range s.moves() {
			if !m.settling {
				continue
			}
			after := s.after(m)
			if index, _ := x.known.enter(after.key(), x.next); !ends[index] {
				names, s, at = append(names, "circling: "+m.what), after, index
				break
			}
		}
	}
	return names
}

func (x *search) ordinals(at uint32) []uint16 {
	var list []uint16
	for i := at; i > 0; i = x.trails[i].parent {
		list = append(list, x.trails[i].move)
	}
	slices.Reverse(list)
	return list
}

func (x *search) play(at uint32) *state {
	s := begin(x.config)
	for _, i := range x.ordinals(at) {
		s = s.after(s.moves()[i])
	}
	return s
}

func (x *search) path(at uint32, more ...string) []string {
	var names []string
	s := begin(x.config)
	for _, i := range x.ordinals(at) {
		m := s.moves()[i]
		names = append(names, m.what)
		s = s.after(m)
	}
	return append(names, more...)
}
