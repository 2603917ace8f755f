// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Action is one event, by names only: a trace can be replayed without some of its actions.
type Action struct {
	Who, What, Arg string
}

func (a Action) String() string {
	return strings.TrimRight(a.Who+" "+a.What+" "+a.Arg, " ")
}

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

// The dice choose the class first: the mix determines the rate of faults, for any number of possible
// faults.
type class uint8

const (
	work  class = iota // of processes by themselves
	churn              // of users
	harm               // faults
	cure               // ends of faults
	clock              // time passes
	classes
)

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

type process interface {
	offer(m *menu)
	// act is false if the action is not on offer.
	act(what, arg string) bool
	// due is when time alone would offer something; zero: never.
	due() time.Time
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
