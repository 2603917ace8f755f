// SPDX-License-Identifier: Apache-2.0

package web

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// state is what is known at one instant.
type state struct {
	// seq rises with every new view.
	seq   uint64
	view  *view.View
	world *facts.World
	// problem says why what is shown may be old; empty where nothing is wrong.
	problem string
}

// hub has the latest state, and says when there is a newer one. Whoever is slow misses
// those between: nobody waits for anybody. Safe for parallel use.
type hub struct {
	mu      sync.Mutex
	now     state
	changed chan struct{}
}

func newHub() *hub { return &hub{changed: make(chan struct{})} }

// get is the latest state, and a channel that is closed when there is a newer one.
func (h *hub) get() (state, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now, h.changed
}

func (h *hub) set(w *facts.World, v *view.View) {
	h.change(func(s *state) { s.seq, s.world, s.view = s.seq+1, w, v })
}

func (h *hub) setProblem(problem string) {
	if now, _ := h.get(); now.problem != problem {
		h.change(func(s *state) { s.problem = problem })
	}
}

func (h *hub) change(do func(*state)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do(&h.now)
	close(h.changed)
	h.changed = make(chan struct{})
}

// message is what a browser gets: first the whole view, then what leads from one to the next.
type message struct {
	// Seq is the view that the browser then has, From the one that Delta begins with.
	Seq   uint64      `json:"seq"`
	From  uint64      `json:"from,omitempty"`
	View  *view.View  `json:"view,omitempty"`
	Delta *view.Delta `json:"delta,omitempty"`
	// Now is the cluster's time, and Frozen that it does not pass.
	Now     time.Time `json:"now"`
	Frozen  bool      `json:"frozen,omitempty"`
	Source  string    `json:"source,omitempty"`
	Problem string    `json:"problem,omitempty"`
}
