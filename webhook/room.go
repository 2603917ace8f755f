// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"slices"
	"sync"
	"time"
)

// room bounds all requests' bodies together, in bytes. A client may send a large body slowly or not at all.
// While a body waits for room, a body older than bodyGrace may be cut off, beginning with the client that
// holds the most. Waiting clients enter by the size that they would hold: many slow clients don't keep out
// a small one. Safe for parallel use.
type room struct {
	mu      sync.Mutex
	free    int64
	held    map[string]int64 // by client
	inside  []*guest         // in order of entry
	waiting []*guest         // in order of arrival
}

// bodyGrace is a body's time while others wait. The API server's bodies, mostly up to 3 MiB, take some
// milliseconds.
const bodyGrace = 250 * time.Millisecond

type guest struct {
	client string
	size   int64
	cut    func() // ends the read

	in      chan struct{} // closed at entry
	since   time.Time     // when
	arrived bool          // or cut off
	wasCut  bool
}

func newRoom(size int64) *room { return &room{free: size, held: map[string]int64{}} }

// enter waits for room, or until ctx is done. A guest that has entered must leave.
func (r *room) enter(ctx context.Context, g *guest) error {
	g.in = make(chan struct{})
	r.mu.Lock()
	r.waiting = append(r.waiting, g)
	r.admit()
	r.mu.Unlock()
	again := time.NewTicker(bodyGrace)
	defer again.Stop()
	for {
		select {
		case <-g.in:
			return nil
		case <-again.C:
			r.mu.Lock()
			r.admit()
			r.mu.Unlock()
		case <-ctx.Done():
			if r.giveUp(g) {
				return ctx.Err()
			}
			return nil // it was let in meanwhile
		}
	}
}

// giveUp removes a waiting guest; false: it did not wait.
func (r *room) giveUp(g *guest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.waiting, g)
	if i < 0 {
		return false
	}
	r.waiting = slices.Delete(r.waiting, i, i+1)
	r.admit()
	return true
}

// whole notes the end of a body's read; false: it was cut off.
func (r *room) whole(g *guest) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.arrived = true
	return !g.wasCut
}

func (r *room) leave(g *guest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.inside, g)
	r.inside = slices.Delete(r.inside, i, i+1)
	r.free += g.size
	if r.held[g.client] -= g.size; r.held[g.client] <= 0 {
		delete(r.held, g.client)
	}
	r.admit()
}

// admit lets guests in while there is room, and then makes some. mu is held.
func (r *room) admit() {
	for len(r.waiting) > 0 {
		next := 0
		for i, g := range r.waiting {
			if r.with(g) < r.with(r.waiting[next]) {
				next = i
			}
		}
		g := r.waiting[next]
		if g.size > r.free {
			r.shed(g.size)
			return
		}
		r.waiting = slices.Delete(r.waiting, next, next+1)
		r.free -= g.size
		r.held[g.client] += g.size
		g.since = time.Now()
		r.inside = append(r.inside, g)
		close(g.in)
	}
}

func (r *room) with(g *guest) int64 { return r.held[g.client] + g.size }

// shed cuts off slow bodies, until size is free once they have left.
func (r *room) shed(size int64) {
	coming := r.free
	for _, g := range r.inside {
		if g.wasCut {
			coming += g.size
		}
	}
	now := time.Now()
	for coming < size {
		var slowest *guest
		for _, g := range r.inside {
			if !g.arrived && !g.wasCut && now.Sub(g.since) >= bodyGrace && (slowest == nil || r.held[g.client] > r.held[slowest.client]) {
				slowest = g
			}
		}
		if slowest == nil {
			return
		}
		slowest.wasCut = true
		slowest.cut()
		coming += slowest.size
	}
}
