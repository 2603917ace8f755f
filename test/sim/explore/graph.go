// SPDX-License-Identifier: Apache-2.0

package explore

// step is a transition by the processes' own move: neither a failure nor a choice.
type step struct{ from, to uint32 }

// graph is the states and the steps between them.
type graph struct {
	states int
	steps  [][]step
	// into lists the sources of the steps to a state: state i's are between starts[i] and starts[i+1].
	into   []uint32
	starts []uint32
}

// index sorts the steps by their target.
func (g *graph) index() {
	g.starts = make([]uint32, g.states+1)
	for _, list := range g.steps {
		for _, e := range list {
			g.starts[e.to+1]++
		}
	}
	for i := range g.states {
		g.starts[i+1] += g.starts[i]
	}
	g.into = make([]uint32, g.starts[g.states])
	next := append([]uint32(nil), g.starts[:g.states]...)
	for _, list := range g.steps {
		for _, e := range list {
			g.into[next[e.to]] = e.from
			next[e.to]++
		}
	}
}

// ending marks the states from which each sequence of steps ends: states without steps, and states with
// steps only to such states.
func (g *graph) ending() []bool {
	out := make([]uint32, g.states)
	for _, list := range g.steps {
		for _, e := range list {
			out[e.from]++
		}
	}
	var queue []uint32
	for i, n := range out {
		if n == 0 {
			queue = append(queue, uint32(i))
		}
	}
	marked := make([]bool, g.states)
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		marked[i] = true
		for _, from := range g.into[g.starts[i]:g.starts[i+1]] {
			if out[from]--; out[from] == 0 {
				queue = append(queue, from)
			}
		}
	}
	return marked
}
