// SPDX-License-Identifier: Apache-2.0

package explore

// table finds states by their keys: a hash table without pointers, of 12 bytes
// a slot, at most three quarters full.
type table struct {
	keys []uint64 // 0: free
	at   []uint32 // the state's index
	size int
}

func newTable() *table { return &table{keys: make([]uint64, 1<<16), at: make([]uint32, 1<<16)} }

// slot is where a key is, or would be.
func (t *table) slot(k uint64) int {
	mask := len(t.keys) - 1
	i := int(k) & mask
	for t.keys[i] != 0 && t.keys[i] != k {
		i = (i + 1) & mask
	}
	return i
}

// enter notes a state as the one of index next, and says at which index it is:
// at another one, it was there before.
func (t *table) enter(k uint64, next uint32) uint32 {
	i := t.slot(k)
	if t.keys[i] == k {
		return t.at[i]
	}
	t.keys[i], t.at[i] = k, next
	if t.size++; t.size > len(t.keys)/4*3 {
		t.grow()
	}
	return next
}

func (t *table) grow() {
	keys, at := t.keys, t.at
	t.keys, t.at = make([]uint64, 2*len(keys)), make([]uint32, 2*len(keys))
	for i, k := range keys {
		if k != 0 {
			j := t.slot(k)
			t.keys[j], t.at[j] = k, at[i]
		}
	}
}
