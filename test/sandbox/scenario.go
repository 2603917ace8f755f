// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"slices"
	"time"
)

type Scenario struct {
	Name string
	Doc  string
	// Modes has the most telling mode first. If upstream's outcome differs, Run asserts upstream's in those
	// modes.
	Modes []Mode
	// Nil takes DefaultShape. The mode is set already and stays.
	Shape func(*Shape)
	// Exclusive scenarios share their cluster with no other scenario.
	Exclusive bool
	// Bare scenarios are about the sandbox: they start their own clusters from Env.Options.
	Bare bool
	// Extra scenarios run only when they are named, not with "all".
	Extra   bool
	Timeout time.Duration
	// Long scenarios begin first. Nothing fails by it; zero means DefaultTakes.
	Takes time.Duration
	// Run returns nil when every expectation held. Its namespace is emptied afterwards.
	Run func(ctx context.Context, e *Env) error
}

const DefaultTimeout = 4 * time.Minute

const DefaultTakes = 10 * time.Second

func (s Scenario) Estimate() time.Duration { return cmp.Or(s.Takes, DefaultTakes) }

func (s Scenario) timeout() time.Duration { return cmp.Or(s.Timeout, DefaultTimeout) }

func (s Scenario) In(mode Mode) Shape {
	shape := DefaultShape()
	shape.Mode = mode
	if s.Shape != nil {
		s.Shape(&shape)
	}
	shape.Mode = mode
	return shape
}

func (s Scenario) Real() Scenario {
	shape := s.Shape
	s.Shape = func(real *Shape) {
		if shape != nil {
			shape(real)
		}
		real.Real = true
	}
	return s
}

func (s Scenario) Supports(mode Mode) bool { return slices.Contains(s.Modes, mode) }
