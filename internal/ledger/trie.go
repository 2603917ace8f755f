// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"math/bits"
	"slices"
)

// trie is a persistent hash array mapped trie. A copy of the root is a snapshot. A writer changes its
// generation's nodes in place and copies others: a raised generation freezes everything.
//
// The hash is seedless and the shape canonical: equal keys give equal tries and iterations.
type trie[K comparable, V any] struct {
	root *branch[K, V]
	size int
	how  *hashing[K, V]
}

// hashing has the keys' functions. A value knows its key.
type hashing[K comparable, V any] struct {
	hash   func(K) uint64
	rehash func(*V) uint64 // hash of the value's key
	is     func(*V, K) bool
	marks  func(*V) bool // nil: no marks
}

const (
	branchBits = 6
	branchMask = 1<<branchBits - 1
	hashBits   = 64
)

// branch is an inner node.
//
//	Invariant: slot i of the 64 is a value (in leafs), a deeper branch (in
//	kids) or empty; never two of them
//	Invariant: a deeper branch holds two values or more
//	Invariant: the slots in marked are the slots with a marked value, in them or
//	deeper
//
// Beyond the last bits of the hash, leafs holds values with equal hashes, in no order, and marked is
// not 0 if one of them is marked.
type branch[K comparable, V any] struct {
	gen      uint64
	leafBits uint64
	kidBits  uint64
	marked   uint64
	leafs    []*V
	kids     []*branch[K, V]
}

func newTrie[K comparable, V any](hash func(K) uint64, key func(*V) K) trie[K, V] {
	return trie[K, V]{how: &hashing[K, V]{
		hash:   hash,
		rehash: func(v *V) uint64 { return hash(key(v)) },
		is:     func(v *V, k K) bool { return key(v) == k },
	}}
}

// get returns the value of k, or nil.
func (t *trie[K, V]) get(k K) *V {
	h := t.how.hash(k)
	b := t.root
	for shift := 0; b != nil; shift += branchBits {
		if shift >= hashBits {
			return b.collision(k, t.how.is)
		}
		bit := uint64(1) << (h >> shift & branchMask)
		if b.leafBits&bit != 0 {
			if v := b.leafs[rank(b.leafBits, bit)]; t.how.is(v, k) {
				return v
			}
			return nil
		}
		if b.kidBits&bit == 0 {
			return nil
		}
		b = b.kids[rank(b.kidBits, bit)]
	}
	return nil
}

// rank is the index of a bit's slot: the number of lower bits.
func rank(set, bit uint64) int { return bits.OnesCount64(set & (bit - 1)) }

func (b *branch[K, V]) collision(k K, is func(*V, K) bool) *V {
	for _, v := range b.leafs {
		if is(v, k) {
			return v
		}
	}
	return nil
}

// put sets v under its key k. A value changed in place, with another mark, must be put again.
func (t *trie[K, V]) put(gen uint64, k K, v *V) {
	var added bool
	t.root, added = t.insert(t.root, gen, 0, t.how.hash(k), k, v)
	if added {
		t.size++
	}
}

func (t *trie[K, V]) insert(b *branch[K, V], gen uint64, shift int, h uint64, k K, v *V) (*branch[K, V], bool) {
	b = b.own(gen)
	if shift >= hashBits {
		for i, old := range b.leafs {
			if t.how.is(old, k) {
				b.leafs[i] = v
				t.markAlike(b)
				return b, false
			}
		}
		b.leafs = append(b.leafs, v)
		t.markAlike(b)
		return b, true
	}
	bit := uint64(1) << (h >> shift & branchMask)
	kid := rank(b.kidBits, bit)
	if b.kidBits&bit != 0 {
		next, added := t.insert(b.kids[kid], gen, shift+branchBits, h, k, v)
		b.kids[kid] = next
		b.mark(bit, next.marked != 0)
		return b, added
	}
	leaf := rank(b.leafBits, bit)
	if b.leafBits&bit == 0 {
		b.leafs = insertAt(b.leafs, leaf, v)
		b.leafBits |= bit
		b.mark(bit, t.how.marked(v))
		return b, true
	}
	old := b.leafs[leaf]
	if old == v || t.how.is(old, k) {
		b.leafs[leaf] = v
		b.mark(bit, t.how.marked(v))
		return b, false
	}
	// Two values share this slot: move both down.
	deeper, _ := t.insert(t.branchOf(gen, shift+branchBits, old), gen, shift+branchBits, h, k, v)
	b.leafs = removeAt(b.leafs, leaf)
	b.leafBits &^= bit
	b.kids = insertAt(b.kids, kid, deeper)
	b.kidBits |= bit
	b.mark(bit, deeper.marked != 0)
	return b, true
}

// branchOf makes a branch that holds one value.
func (t *trie[K, V]) branchOf(gen uint64, shift int, v *V) *branch[K, V] {
	b := &branch[K, V]{gen: gen, leafs: []*V{v}}
	if shift >= hashBits {
		t.markAlike(b)
		return b
	}
	b.leafBits = 1 << (t.how.rehash(v) >> shift & branchMask)
	b.mark(b.leafBits, t.how.marked(v))
	return b
}

func (h *hashing[K, V]) marked(v *V) bool { return h.marks != nil && h.marks(v) }

// mark notes whether a slot has a marked value at any depth.
func (b *branch[K, V]) mark(bit uint64, marked bool) {
	b.marked &^= bit
	if marked {
		b.marked |= bit
	}
}

// markAlike is mark for values with equal hashes.
func (t *trie[K, V]) markAlike(b *branch[K, V]) {
	b.mark(1, slices.ContainsFunc(b.leafs, t.how.marked))
}

func (t *trie[K, V]) del(gen uint64, k K) {
	if t.get(k) == nil {
		return
	}
	t.root = t.remove(t.root, gen, 0, t.how.hash(k), k)
	t.size--
}

// remove returns b without k, or nil if empty. k is in b.
func (t *trie[K, V]) remove(b *branch[K, V], gen uint64, shift int, h uint64, k K) *branch[K, V] {
	b = b.own(gen)
	if shift >= hashBits {
		for i, v := range b.leafs {
			if t.how.is(v, k) {
				b.leafs = removeAt(b.leafs, i)
				break
			}
		}
		t.markAlike(b)
		return b.orNil()
	}
	bit := uint64(1) << (h >> shift & branchMask)
	if b.leafBits&bit != 0 {
		b.leafs = removeAt(b.leafs, rank(b.leafBits, bit))
		b.leafBits &^= bit
		b.mark(bit, false)
		return b.orNil()
	}
	kid := rank(b.kidBits, bit)
	next := t.remove(b.kids[kid], gen, shift+branchBits, h, k)
	b.mark(bit, next.marked != 0)
	if len(next.leafs)+len(next.kids) > 1 || len(next.kids) == 1 {
		b.kids[kid] = next
		return b
	}
	// The last value moves up into the slot.
	b.kids = removeAt(b.kids, kid)
	b.kidBits &^= bit
	b.leafs = insertAt(b.leafs, rank(b.leafBits, bit), next.leafs[0])
	b.leafBits |= bit
	return b
}

func (b *branch[K, V]) orNil() *branch[K, V] {
	if len(b.leafs) == 0 && len(b.kids) == 0 {
		return nil
	}
	return b
}

// own returns a branch that gen may change.
func (b *branch[K, V]) own(gen uint64) *branch[K, V] {
	switch {
	case b == nil:
		return &branch[K, V]{gen: gen}
	case b.gen == gen:
		return b
	}
	c := *b
	c.gen = gen
	c.leafs = append(make([]*V, 0, len(b.leafs)), b.leafs...)
	c.kids = append(make([]*branch[K, V], 0, len(b.kids)), b.kids...)
	return &c
}

// all iterates in the order of hashes.
func (t *trie[K, V]) all() iter.Seq[*V] {
	return func(yield func(*V) bool) { t.walk(t.root, false, yield) }
}

// marked iterates over marked values in order, and skips branches without marks.
func (t *trie[K, V]) marked() iter.Seq[*V] {
	return func(yield func(*V) bool) { t.walk(t.root, true, yield) }
}

func (t *trie[K, V]) walk(b *branch[K, V], marked bool, yield func(*V) bool) bool {
	if b == nil {
		return true
	}
	if b.leafBits|b.kidBits == 0 { // beyond the last bits
		for _, v := range b.leafs {
			if (!marked || t.how.marked(v)) && !yield(v) {
				return false
			}
		}
		return true
	}
	rest := b.leafBits | b.kidBits
	if marked {
		rest = b.marked
	}
	for ; rest != 0; rest &= rest - 1 {
		if bit := rest & -rest; b.leafBits&bit != 0 {
			if !yield(b.leafs[rank(b.leafBits, bit)]) {
				return false
			}
		} else if !t.walk(b.kids[rank(b.kidBits, bit)], marked, yield) {
			return false
		}
	}
	return true
}

// insertAt and removeAt resize by exactly one: branches are many and small.
func insertAt[T any](s []T, i int, v T) []T {
	out := make([]T, len(s)+1)
	copy(out, s[:i])
	out[i] = v
	copy(out[i+1:], s[i:])
	return out
}

func removeAt[T any](s []T, i int) []T {
	if len(s) == 1 {
		return nil
	}
	out := make([]T, len(s)-1)
	copy(out, s[:i])
	copy(out[i:], s[i+1:])
	return out
}

// hashStrings does not resist an attacker: colliding keys cost a scan.
func hashStrings(a, b string) uint64 {
	h := mixString(0x9e3779b97f4a7c15, a)
	h = mixString(h^0xff51afd7ed558ccd, b)
	h ^= h >> 32
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>29
}

func mixString(h uint64, s string) uint64 {
	for len(s) >= 8 {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = mixWord(h, w)
		s = s[8:]
	}
	w := uint64(len(s))
	for i := 0; i < len(s); i++ {
		w = w<<8 | uint64(s[i])
	}
	return mixWord(h, w)
}

func mixWord(h, w uint64) uint64 {
	hi, lo := bits.Mul64(h^w, 0x9fb21c651e98df25)
	return bits.RotateLeft64(hi^lo, 23) + w
}
