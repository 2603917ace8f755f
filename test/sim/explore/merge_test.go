// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMerging checks that states with the same key continue alike, so that none is missed: by the same
// moves, to states with the same keys and faults. In each world some states are reached in random order,
// and each MERGE_EVERYth arrival at a known state is checked:
//
//	MERGE_STATES=100000 MERGE_EVERY=1 go test -run TestMerging/vanished -timeout 1h ./test/sim/explore
func TestMerging(t *testing.T) {
	for _, w := range slices.Concat(Small(), Large(), Bad(), Residual()) {
		t.Run(strings.ReplaceAll(w.Name, " ", "-"), func(t *testing.T) {
			m := &merging{config: w.Config, limit: number("MERGE_STATES", 1000), every: number("MERGE_EVERY", 10)}
			m.search()
			m.check(t)
		})
	}
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// merging compares the continuations of states that the search takes for each other.
type merging struct {
	config       Config
	limit, every int
	states       []visited
	again        []visited // states taken for others
	seen         int
}

type visited struct {
	at, parent, move int
	future           uint64 // its hash; 0: not computed
}

func future(s *state) []string {
	var list []string
	settling := false
	for _, m := range s.moves() {
		after := s.after(m)
		settling = settling || m.settling
		list = append(list, fmt.Sprintf("%s (by itself: %v): state %x, fault %q", m.what, m.settling, after.key(), after.broken()))
	}
	if !settling {
		list = append(list, fmt.Sprintf("nothing moves any more: %q", s.unsettled()))
	}
	slices.Sort(list)
	return list
}

func hashed(list []string) uint64 { return max(1, maphash.String(seed(), strings.Join(list, "\n"))) }

func (m *merging) search() {
	dice := rand.New(rand.NewPCG(1, 1))
	first := begin(m.config)
	known := map[uint64]int{first.key(): 0}
	open := []*state{first}
	at := []int{0}
	m.states = []visited{{0, -1, 0, 0}}
	for len(open) > 0 && len(m.states) < m.limit {
		pick := len(open) - 1
		if dice.IntN(8) == 0 {
			pick = dice.IntN(len(open))
		}
		s, from := open[pick], at[pick]
		open, at = slices.Delete(open, pick, pick+1), slices.Delete(at, pick, pick+1)
		m.states[from].future = hashed(future(s))
		moves := s.moves()
		for _, i := range dice.Perm(len(moves)) {
			after := s.after(moves[i])
			if after.broken() != "" {
				continue
			}
			k := after.key()
			if to, reached := known[k]; reached {
				m.arrive(after, to, from, i)
				continue
			}
			known[k] = len(m.states)
			open, at = append(open, after), append(at, known[k])
			m.states = append(m.states, visited{known[k], from, i, 0})
		}
	}
}

func (m *merging) arrive(s *state, to, from, move int) {
	if m.seen++; m.seen%m.every == 0 {
		m.again = append(m.again, visited{to, from, move, hashed(future(s))})
	}
}

func (m *merging) check(t *testing.T) {
	for _, v := range m.again {
		was := m.states[v.at]
		if was.future == 0 {
			s, _ := m.play(was)
			was.future = hashed(future(s))
		}
		if was.future != v.future {
			m.tell(t, was, v)
			return
		}
	}
	if len(m.again) == 0 {
		t.Error("nothing was checked")
	}
	t.Logf("%d states, %d checked", len(m.states), len(m.again))
}

func (m *merging) tell(t *testing.T, was, is visited) {
	only := func(a, b []string) string {
		times := map[string]int{}
		for _, line := range b {
			times[line]++
		}
		return strings.Join(slices.DeleteFunc(slices.Clone(a), func(line string) bool {
			times[line]--
			return times[line] >= 0
		}), "\n    ")
	}
	before, wasNames := m.play(was)
	after, isNames := m.play(is)
	one, other := future(before), future(after)
	t.Errorf("two states have one key, and go on differently:\n  %s\ngoes on by\n    %s\n  %s\ngoes on by\n    %s",
		strings.Join(wasNames, "\n  "), only(one, other), strings.Join(isNames, "\n  "), only(other, one))
}

func (m *merging) play(v visited) (*state, []string) {
	var moves []int
	for ; v.parent >= 0; v = m.states[v.parent] {
		moves = append(moves, v.move)
	}
	s, names := begin(m.config), []string(nil)
	for _, i := range slices.Backward(moves) {
		move := s.moves()[i]
		names, s = append(names, move.what), s.after(move)
	}
	return s, names
}
