// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/moorage-dev/moorage/test/world"
)

// When all controllers know everything, and no earlier decision is in flight, departed volumes and lowered
// limits excuse no more grants.
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
			return c.up && c.observer.snapshot().Volume(at.Volume).OnNode(at.Node) != nil
		})
	})
}

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

func (o *observer) knowsAll() bool { return o.caller.awake() && o.synced() && o.current() }

func (o *observer) current() bool {
	for _, k := range o.kinds {
		if o.at[k] >= 0 && o.at[k] < len(o.s.logs[k]) {
			return false
		}
	}
	return true
}
