// SPDX-License-Identifier: Apache-2.0

package explore

type step struct{ from, to uint32 }

type graph struct {
	states int
	steps  [][]step
	// The sources of state i's steps are between starts[i] and starts[i+1].
	into   []uint32
	starts []uint32
}

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
