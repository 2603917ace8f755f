// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Scenario is one story told on a cluster, with an outcome that it asserts.
type Scenario struct {
	// Name is what `run` takes: lower case, with dashes.
	Name string
	// Doc is a sentence with events and expectations.
	Doc string
	// Modes are the scenario's modes, the most telling first. If upstream's outcome differs, Run
	// asserts upstream's in those modes.
	Modes []Mode
	// Shape changes the cluster it needs; nil takes DefaultShape. The mode is
	// set already and stays.
	Shape func(*Shape)
	// Exclusive scenarios get a cluster that no other scenario uses.
	Exclusive bool
	// Bare scenarios are about the sandbox itself: they get no cluster and
	// start their own, from Env.Options.
	Bare bool
	// Extra scenarios are not among "all": they run when they are named.
	Extra bool
	// Timeout bounds Run; zero means DefaultTimeout.
	Timeout time.Duration
	// Takes is about how long it takes with everything that comes after Run; zero means DefaultTakes.
	// Side by side the long scenarios begin first, so that none is alone in the end. Nothing fails by
	// it.
	Takes time.Duration
	// Run tells the story. It returns nil when every expectation held. Its namespace's content is
	// removed afterwards; the runner then checks that nothing is left over, that the judge saw no
	// violation, and that no call of Moorage's was denied.
	Run func(ctx context.Context, e *Env) error
}

// DefaultTimeout bounds a scenario that names no other.
const DefaultTimeout = 4 * time.Minute

// DefaultTakes is what most scenarios take.
const DefaultTakes = 10 * time.Second

// Estimate is about how long the scenario takes, without the start of a cluster.
func (s Scenario) Estimate() time.Duration { return cmp.Or(s.Takes, DefaultTakes) }

func (s Scenario) timeout() time.Duration { return cmp.Or(s.Timeout, DefaultTimeout) }

// In returns the shape of the cluster that the scenario needs in a mode.
func (s Scenario) In(mode Mode) Shape {
	shape := DefaultShape()
	shape.Mode = mode
	if s.Shape != nil {
		s.Shape(&shape)
	}
	shape.Mode = mode
	return shape
}

// Real returns the scenario on nodes that run containers and mount disks.
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

// Supports says whether the scenario can run in a mode.
func (s Scenario) Supports(mode Mode) bool { return slices.Contains(s.Modes, mode) }
