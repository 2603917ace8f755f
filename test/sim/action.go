// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Action is one thing that happens: who does it, what, and to what. It names
// everything by what it is, never by a number that other actions would shift,
// so that a trace can be played again with some of its actions left out.
type Action struct {
	Who, What, Arg string
}

func (a Action) String() string {
	return strings.TrimRight(a.Who+" "+a.What+" "+a.Arg, " ")
}

// ParseAction reads what String writes.
func ParseAction(line string) (Action, error) {
	fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
	if len(fields) < 2 {
		return Action{}, fmt.Errorf("%q: an action is who, what and to what", line)
	}
	a := Action{Who: fields[0], What: fields[1]}
	if len(fields) == 3 {
		a.Arg = fields[2]
	}
	return a, nil
}

// class is a group of actions that the dice choose between first, so that
// faults stay as rare as the run's mix has them, however many there are.
type class uint8

const (
	work  class = iota // what everybody does by themselves
	churn              // what users do
	harm               // faults
	cure               // their ends
	clock              // time passes
	classes
)

// menu collects what may happen next, each with how likely it is beside the
// others of its class.
type menu struct {
	actions [classes][]Action
	weights [classes][]int
	total   [classes]int
}

func (m *menu) add(weight int, who, what, arg string) { m.addTo(work, weight, who, what, arg) }

func (m *menu) addTo(c class, weight int, who, what, arg string) {
	m.actions[c] = append(m.actions[c], Action{who, what, arg})
	m.weights[c] = append(m.weights[c], weight)
	m.total[c] += weight
}

// pick draws an action: one of a class that rates (of 1000) choose, else work.
// It is false when there is nothing to choose from.
func (m *menu) pick(rng *rand.Rand, rates [classes]int) (Action, bool) {
	from, point := work, rng.IntN(1000)
	for c := churn; c < classes; c++ {
		if point -= rates[c]; point < 0 {
			from = c
			break
		}
	}
	if m.total[from] == 0 {
		from = work
	}
	for c := churn; m.total[from] == 0 && c < classes; c++ {
		if rates[c] > 0 {
			from = c
		}
	}
	if m.total[from] == 0 {
		return Action{}, false
	}
	point = rng.IntN(m.total[from])
	for i, w := range m.weights[from] {
		if point -= w; point < 0 {
			return m.actions[from][i], true
		}
	}
	return Action{}, false
}

func (m *menu) reset() {
	for c := range classes {
		m.actions[c], m.weights[c], m.total[c] = m.actions[c][:0], m.weights[c][:0], 0
	}
}

// process is whoever takes part: it takes no action but those it offers.
type process interface {
	// offer adds the actions that the process may take now.
	offer(m *menu)
	// act takes one of them. It is false for one that is not on offer.
	act(what, arg string) bool
	// due is when time alone would put something on offer; zero: never.
	due() time.Time
}

// earlier is the earlier of two times of which either may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
