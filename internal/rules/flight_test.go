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

// Some creations of VolumeAttachments and reports get no answer: they are carried out later, or never.
// Until then their volumes are not planned. Only FindAttachment settles a creation, since the read after it
// gets no answer either.

// errUnanswered says that the outcome of a write is unknown.
var errUnanswered = errors.New("no answer")

// unanswered is a request in flight, and its step.
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

// land ends the flight of the i-th request: it is carried out, or never will be. The controller sees it as
// another actor's write.
func (c *cluster) land(i int, done bool) {
	u := c.flying[i]
	c.flying = slices.Delete(slices.Clone(c.flying), i, i+1)
	c.trace("in flight: %s: %s", c.stepText(u.step), map[bool]string{true: "done", false: "lost"}[done])
	if done {
		c.ask(u.request)
	}
}

// flight leaves added requests unanswered, or ends the flights: done or lost.
func (s *script) flight(a args) {
	s.mutes = func() bool { return a.flag("unanswered") }
	for len(s.flying) > 0 && !a.flag("unanswered") {
		s.land(0, a.flag("done"))
	}
}

// newWorldFlight is a world in which every third creation or report gets no answer. One volume is reported
// without an attachment: its kubelet waits for nothing else.
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

// landAll ends all flights, before a new leader begins or the faults end.
func (w *randomWorld) landAll() {
	for len(w.flying) > 0 {
		w.land(0, w.below(2) == 0)
	}
}

// TestWorldFlight plays random worlds with long flights of creations and reports: a possible attach counts,
// however long it takes and whatever is deleted meanwhile.
func TestWorldFlight(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		newWorldFlight(proptest.Bytes(t, 900)).play(t)
	})
}
