// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"
)

// A state with a way to a circle may never end.
func TestEnding(t *testing.T) {
	g := graph{states: 7, steps: [][]step{
		{{0, 1}, {0, 2}, {1, 3}, {2, 3}}, // 0 to 3 end in 3
		{{4, 5}, {5, 4}, {5, 3}},         // 4 and 5 may circle forever
		{{6, 3}, {6, 4}},
	}}
	g.index()
	if got, want := g.ending(), []bool{true, true, true, true, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("ending: %v, want %v", got, want)
	}
}

func TestTable(t *testing.T) {
	x := newTable()
	const many = 200_000 // it grows a few times
	key := func(i uint32) uint64 { return uint64(i+1) * 0x9e3779b97f4a7c15 }
	for i := range uint32(many) {
		if at, fresh := x.enter(key(i), func() uint32 { return i }); at != i || !fresh {
			t.Fatalf("%d is new, and is at %d", i, at)
		}
	}
	for i := range uint32(many) {
		if at, fresh := x.enter(key(i), func() uint32 { return many }); at != i || fresh {
			t.Fatalf("%d is at %d", i, at)
		}
	}
}

// The key does not depend on how far versions and UIDs have counted up, and differs after any event.
func TestKey(t *testing.T) {
	s := begin(Handover())
	later := s.clone()
	later.w.UID()
	p, _ := later.w.Pod(pod(2))
	p.Name = "other"
	later.w.Put(p)
	p.Name = pod(2)
	later.w.Put(p)
	later.leader = nil
	later.led--
	later.lead()
	later.w.Log = nil
	if s.key() != later.key() {
		t.Error("the same state has another key")
	}
	for _, m := range s.moves() {
		if s.after(m).key() == s.key() {
			t.Errorf("%q leads to a state with the same key", m.what)
		}
	}
}
