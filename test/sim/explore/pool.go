// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"sync"
	"sync/atomic"
)

type open struct {
	state *state
	index uint32
}

type pool struct {
	mu      sync.Mutex
	changed sync.Cond
	open    []open
	workers int
	idle    int
	hungry  atomic.Bool // a worker waits, and the pool is empty
	over    atomic.Bool
}

func newPool(workers int) *pool {
	p := &pool{workers: workers}
	p.changed.L = &p.mu
	return p
}

func (p *pool) give(list ...open) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, list...)
	p.hungry.Store(false)
	p.changed.Broadcast()
}

func (p *pool) take() (open, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle++
	for len(p.open) == 0 && !p.over.Load() {
		if p.idle == p.workers {
			p.over.Store(true)
			p.changed.Broadcast()
			break
		}
		p.hungry.Store(true)
		p.changed.Wait()
	}
	if p.over.Load() {
		return open{}, false
	}
	p.idle--
	last := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	return last, true
}

func (p *pool) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over.Store(true)
	p.changed.Broadcast()
}
