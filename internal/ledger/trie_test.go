// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/proptest"
)

type entry struct {
	key   int
	value int
}

func narrow(k int) uint64 { return uint64(k%7) << 60 >> (k % 3 * 20) }

func newTestTrie(hash func(int) uint64) trie[int, entry] {
	return newTrie(hash, func(e *entry) int { return e.key })
}

func contents(of iter.Seq[*entry]) map[int]int {
	m := map[int]int{}
	for e := range of {
		m[e.key] = e.value
	}
	return m
}

// A Go map is the model, also for each snapshot.
func TestTrieIsAMap(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		hash := rapid.SampledFrom([]func(int) uint64{narrow, func(k int) uint64 { return hashStrings(string(rune(k)), "") }}).Draw(t, "hash")
		fast, slow := newTestTrie(hash), map[int]int{}
		fast.how.marks = func(e *entry) bool { return e.value%3 == 0 }
		gen, madeIn := uint64(1), map[int]uint64{}
		var frozen []trie[int, entry]
		var was []map[int]int
		steps := rapid.IntRange(1, 80).Draw(t, "steps")
		for i := range steps {
			k := rapid.IntRange(0, 40).Draw(t, "key")
			switch rapid.IntRange(0, 6).Draw(t, "do") {
			case 0, 1, 2:
				fast.put(gen, k, &entry{k, i})
				slow[k], madeIn[k] = i, gen
			case 3, 4:
				fast.del(gen, k)
				delete(slow, k)
			case 5:
				frozen, was = append(frozen, fast), append(was, maps.Clone(slow))
				gen++
			case 6:
				if e := fast.get(k); e != nil && madeIn[k] == gen { // no snapshot has it
					e.value, slow[k] = i, i
					fast.put(gen, k, e)
				}
			}
			if e := fast.get(k); (e != nil) != has(slow, k) || e != nil && e.value != slow[k] {
				t.Fatalf("get(%d) = %v, want %d", k, e, slow[k])
			}
			if fast.size != len(slow) {
				t.Fatalf("size %d, want %d", fast.size, len(slow))
			}
		}
		frozen, was = append(frozen, fast), append(was, slow)
		for i := range frozen {
			if got := contents(frozen[i].all()); !maps.Equal(got, was[i]) {
				t.Fatalf("snapshot %d of %d is %v, want %v", i, len(frozen), got, was[i])
			}
			maps.DeleteFunc(was[i], func(_, value int) bool { return value%3 != 0 })
			if got := contents(frozen[i].marked()); !maps.Equal(got, was[i]) {
				t.Fatalf("marked in snapshot %d of %d is %v, want %v", i, len(frozen), got, was[i])
			}
		}
	})
}

func has(m map[int]int, k int) bool {
	_, ok := m[k]
	return ok
}

// The order depends on the keys alone.
func TestTrieIsCanonical(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		hash := func(k int) uint64 { return hashStrings(string(rune(k)), "") }
		keys := rapid.SliceOfNDistinct(rapid.IntRange(0, 2000), 0, 60, rapid.ID[int]).Draw(t, "keys")
		extra := rapid.SliceOfNDistinct(rapid.IntRange(2001, 4000), 0, 60, rapid.ID[int]).Draw(t, "extra")
		a, b := newTestTrie(hash), newTestTrie(hash)
		for _, k := range keys {
			a.put(1, k, &entry{key: k})
		}
		for _, k := range rapid.Permutation(slices.Concat(keys, extra)).Draw(t, "order") {
			b.put(1, k, &entry{key: k})
		}
		for _, k := range extra {
			b.del(1, k)
		}
		if x, y := order(&a), order(&b); !slices.Equal(x, y) {
			t.Fatalf("orders differ: %v and %v", x, y)
		}
		if !slices.IsSortedFunc(order(&a), func(x, y int) int { return compareBits(hash(x), hash(y)) }) {
			t.Fatal("not in the order of the hashes")
		}
	})
}

func order(t *trie[int, entry]) []int {
	var keys []int
	for e := range t.all() {
		keys = append(keys, e.key)
	}
	return keys
}

func compareBits(a, b uint64) int {
	for shift := 0; shift < hashBits; shift += branchBits {
		if x, y := a>>shift&branchMask, b>>shift&branchMask; x != y {
			return int(x) - int(y)
		}
	}
	return 0
}

func TestHashSpreads(t *testing.T) {
	seen := map[uint64]bool{}
	buckets := make([]int, 1<<branchBits)
	const n = 20000
	for i := range n {
		h := hashStrings("vol-"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune(i)), "ebs.csi.aws.com")
		seen[h] = true
		buckets[h&branchMask]++
	}
	if len(seen) < n-1 {
		t.Errorf("%d different hashes of %d keys", len(seen), n)
	}
	for i, count := range buckets {
		if count < n/len(buckets)/2 || count > n/len(buckets)*2 {
			t.Errorf("bucket %d has %d of %d keys", i, count, n)
		}
	}
}

func TestIterationStops(t *testing.T) {
	for _, hash := range []func(int) uint64{narrow, func(k int) uint64 { return uint64(k) }} {
		tr := newTestTrie(hash)
		for k := range 100 {
			tr.put(1, k, &entry{key: k})
		}
		count := 0
		for range tr.all() {
			if count++; count == 5 {
				break
			}
		}
		if count != 5 {
			t.Errorf("stopped after %d", count)
		}
	}
}
