// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
	"github.com/moorage-dev/moorage/test/world"
)

// Some creations and reports get no answer, and are carried out later or never. Only FindAttachment settles
// a creation.

var errUnanswered = errors.New("no answer")

type unanswered struct {
	step    rules.Step
	request world.Request
}

func (u unanswered) creates(name string) bool {
	return u.step.Kind == rules.CreateAttachment && u.step.Attachment == name
}

func (c *cluster) flies(v ledger.VolumeID) bool {
	return slices.ContainsFunc(c.flying, func(u unanswered) bool { return u.step.Volume == v })
}

func (c *cluster) land(i int, done bool) {
	u := c.flying[i]
	c.flying = slices.Delete(slices.Clone(c.flying), i, i+1)
	c.trace("in flight: %s: %s", c.stepText(u.step), map[bool]string{true: "done", false: "lost"}[done])
	if done {
		c.ask(u.request)
	}
}

func (s *script) flight(a args) {
	s.mutes = func() bool { return a.flag("unanswered") }
	for len(s.flying) > 0 && !a.flag("unanswered") {
		s.land(0, a.flag("done"))
	}
}

func newWorldFlight(data []byte) *randomWorld {
	w := newWorld(data)
	pv := w.pv("pv-" + claimKey(1).Name)
	pv.Volume = ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: pv.Name}
	w.put(pv)
	w.flush()
	w.mutes = func() bool { return w.below(3) == 0 }
	land := func() {
		if len(w.flying) > 0 {
			w.land(w.below(len(w.flying)), w.below(2) == 0)
		}
	}
	w.more = []func(){land, land}
	return w
}

func (w *randomWorld) landAll() {
	for len(w.flying) > 0 {
		w.land(0, w.below(2) == 0)
	}
}

func TestWorldFlight(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		newWorldFlight(proptest.Bytes(t, 900)).play(t)
	})
}
