// SPDX-License-Identifier: Apache-2.0

package explore

import "sync"

const shards = 256

// table finds states by their keys. It is safe for parallel use.
type table struct{ parts [shards]part }

// part is a hash table without pointers, 12 bytes a slot, at most three quarters full.
type part struct {
	mu   sync.Mutex
	keys []uint64 // 0: free
	at   []uint32 // the state's index
	size int
}

func newTable() *table {
	t := &table{}
	for i := range t.parts {
		t.parts[i].keys, t.parts[i].at = make([]uint64, 1<<8), make([]uint32, 1<<8)
	}
	return t
}

func (t *table) enter(k uint64, next func() uint32) (at uint32, fresh bool) {
	p := &t.parts[k%shards]
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.slot(k)
	if p.keys[i] == k {
		return p.at[i], false
	}
	at = next()
	p.keys[i], p.at[i] = k, at
	if p.size++; p.size > len(p.keys)/4*3 {
		p.grow()
	}
	return at, true
}

func (p *part) slot(k uint64) int {
	mask := len(p.keys) - 1
	i := int(k/shards) & mask
	for p.keys[i] != 0 && p.keys[i] != k {
		i = (i + 1) & mask
	}
	return i
}

func (p *part) grow() {
	keys, at := p.keys, p.at
	p.keys, p.at = make([]uint64, 2*len(keys)), make([]uint32, 2*len(keys))
	for i, k := range keys {
		if k != 0 {
			j := p.slot(k)
			p.keys[j], p.at[j] = k, at[i]
		}
	}
}
