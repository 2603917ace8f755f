// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/moorage-dev/moorage/test/world"
)

// noteKnown tells the judge when all controllers know all that there is, and nothing that they have decided
// before is on its way: what has left a node by then is no excuse for what is granted afterwards, nor is a limit
// that has shrunk.
func (s *Sim) noteKnown() {
	if !s.w.Judge.Marks(s.w) || !s.allKnown() {
		return
	}
	for _, c := range s.controllers {
		for _, k := range c.observer.kinds {
			s.knownAt[k] = len(s.logs[k])
		}
	}
	s.w.Judge.AllKnown(s.w, func(at world.At) bool {
		return slices.ContainsFunc(s.controllers, func(c *controller) bool {
			return c.up && c.observer.snapshot().Volume(at.Volume).NodeVolume(at.Node) != nil
		})
	})
}

// allKnown says whether every controller that runs has seen all that there is, and none has a request on its
// way, or goes on with what it decided before once a wait is over.
func (s *Sim) allKnown() bool {
	for _, c := range s.controllers {
		if c.up && (c.taking || len(c.outlasted) > 0 || !c.observer.current()) {
			return false
		}
	}
	return !slices.ContainsFunc(s.net.messages, func(m *message) bool {
		return slices.ContainsFunc(s.controllers, func(c *controller) bool { return &c.caller == m.caller })
	})
}

// knowsAll says whether a process runs that has listed everything, and has had all events since.
func (o *observer) knowsAll() bool { return o.caller.awake() && o.synced() && o.current() }

// current says whether all events of the kinds that are listed have been delivered.
func (o *observer) current() bool {
	for _, k := range o.kinds {
		if o.at[k] >= 0 && o.at[k] < len(o.s.logs[k]) {
			return false
		}
	}
	return true
}
