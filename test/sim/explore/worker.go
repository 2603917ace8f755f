// SPDX-License-Identifier: Apache-2.0

package explore

type worker struct {
	x           *search
	stack       []open
	room        scratch
	found       []found
	steps       [][]step
	transitions int
	settled     int
}

type found struct {
	index uint32
	trail
}

func (w *worker) run() {
	for !w.x.pool.over.Load() {
		if len(w.stack) == 0 {
			e, ok := w.x.pool.take()
			if !ok {
				return
			}
			w.stack = append(w.stack, e)
		}
		if spare := len(w.stack) / 2; spare > 0 && w.x.pool.hungry.Load() {
			w.x.pool.give(w.stack[:spare]...)
			w.stack = append([]open(nil), w.stack[spare:]...)
		}
		e := w.stack[len(w.stack)-1]
		w.stack[len(w.stack)-1] = open{}
		w.stack = w.stack[:len(w.stack)-1]
		w.expand(e)
	}
}

func (w *worker) enter(s *state, parent uint32, move int) (uint32, bool) {
	at, fresh := w.x.known.enter(s.keyIn(&w.room), w.x.next)
	if fresh {
		w.found = append(w.found, found{at, trail{parent, uint16(move)}})
	}
	return at, fresh
}

func (w *worker) expand(e open) {
	moves, settling := e.state.moves(), false
	for i, m := range moves {
		w.transitions++
		after := e.state.afterIn(&w.room, m)
		if fault := after.broken(); fault != "" {
			w.x.fail(failure{fault: fault, at: e.index, more: m.what})
			return
		}
		index, fresh := w.enter(after, e.index, i)
		if fresh {
			w.stack = append(w.stack, open{after, index})
		}
		if m.settling {
			settling = true
			w.step(step{e.index, index})
		}
	}
	if !settling {
		w.settled++
		if fault := e.state.unsettled(); fault != "" {
			w.x.fail(failure{fault: fault, at: e.index, more: "and nothing moves any more"})
		}
	}
}

// step uses lists that need no copy to grow.
func (w *worker) step(s step) {
	const long = 1 << 16
	if n := len(w.steps); n == 0 || len(w.steps[n-1]) == long {
		w.steps = append(w.steps, make([]step, 0, long))
	}
	last := &w.steps[len(w.steps)-1]
	*last = append(*last, s)
}
