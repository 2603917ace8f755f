// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
)

// Report is what a search has found.
type Report struct {
	States      int
	Transitions int
	Settled     int  // states in which nothing moves any more
	Circling    int  // states from which those that go on may never end
	Complete    bool // no state is left that was not expanded
	Fault       string
	Path        []string // the moves that lead to it
}

func (r Report) String() string {
	text := fmt.Sprintf("%d states, %d transitions, %d settled, %d circling, complete %v", r.States, r.Transitions, r.Settled, r.Circling, r.Complete)
	if r.Fault != "" {
		text += "\n" + r.Fault + "\n  " + strings.Join(r.Path, "\n  ")
	}
	return text
}

// trail is how a state was reached first.
type trail struct {
	parent uint32
	move   uint16
}

// search goes through all states, the newest first: so few are held at a time.
type search struct {
	config Config
	known  *table
	trails []trail
	graph  graph
	report Report
}

// open is a state that is to be expanded.
type open struct {
	state *state
	index uint32
}

// Search explores a world from its beginning, at most limit states of it.
// listen, if it is not nil, hears how many states there are, now and then.
func Search(config Config, limit int, listen func(Report)) Report {
	x := &search{config: config, known: newTable()}
	first := begin(config)
	x.enter(first, 0, 0)
	stack := []open{{first, 0}}
	for n := 1; len(stack) > 0; n++ {
		if len(x.trails) >= limit {
			return x.done()
		}
		e := stack[len(stack)-1]
		stack = x.expand(e, stack[:len(stack)-1])
		if x.report.Fault != "" {
			return x.done()
		}
		if listen != nil && n%1000000 == 0 {
			listen(x.done())
		}
	}
	x.report.Complete = true
	x.circles()
	return x.done()
}

func (x *search) done() Report {
	x.report.States = len(x.trails)
	return x.report
}

// enter notes a state; it is false for one that was seen before.
func (x *search) enter(s *state, parent uint32, move int) (uint32, bool) {
	next := uint32(len(x.trails))
	at := x.known.enter(s.key(), next)
	if at == next {
		x.trails = append(x.trails, trail{parent, uint16(move)})
	}
	return at, at == next
}

// expand makes every move that can be made in a state.
func (x *search) expand(e open, stack []open) []open {
	moves, settling := e.state.moves(), false
	for i, m := range moves {
		x.report.Transitions++
		after := e.state.after(m)
		if fault := after.broken(); fault != "" {
			x.fail(fault, x.path(e.index, m.what))
			return nil
		}
		index, fresh := x.enter(after, e.index, i)
		if fresh {
			stack = append(stack, open{after, index})
		}
		if m.settling {
			settling = true
			x.graph.steps = append(x.graph.steps, step{e.index, index})
		}
	}
	if !settling {
		x.report.Settled++
		if fault := e.state.unsettled(); fault != "" {
			x.fail(fault, append(x.path(e.index), "and nothing moves any more"))
			return nil
		}
	}
	return stack
}

// circles looks for states from which it goes on for ever.
func (x *search) circles() {
	x.graph.states = len(x.trails)
	x.graph.index()
	ends := x.graph.ending()
	for _, e := range ends {
		if !e {
			x.report.Circling++
		}
	}
	if x.report.Circling > 0 {
		at := uint32(slices.Index(ends, false))
		x.fail("it may go on for ever", append(x.path(at), x.round(at, ends)...))
	}
}

// round follows steps that do not end until they come back.
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
			if index := x.known.enter(after.key(), uint32(len(x.trails))); !ends[index] {
				names, s, at = append(names, "circling: "+m.what), after, index
				break
			}
		}
	}
	return names
}

func (x *search) fail(fault string, path []string) {
	x.report.Fault, x.report.Path = fault, path
}

// ordinals are the moves that lead to a state first.
func (x *search) ordinals(at uint32) []uint16 {
	var list []uint16
	for i := at; i > 0; i = x.trails[i].parent {
		list = append(list, x.trails[i].move)
	}
	slices.Reverse(list)
	return list
}

// play makes the moves that lead to a state.
func (x *search) play(at uint32) *state {
	s := begin(x.config)
	for _, i := range x.ordinals(at) {
		s = s.after(s.moves()[i])
	}
	return s
}

// path names the moves that lead to a state, and what comes then.
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
