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

// Creations of VolumeAttachments, and reports in volumesAttached, whose answers do not
// come: they are carried out some time later, or never. Until then nothing is planned
// for their volumes, as internal/write is still at it; and what it reads after a
// creation is not answered either, so that FindAttachment is what settles it.

// errUnanswered says that nothing is known of what came of a write.
var errUnanswered = errors.New("no answer")

// unanswered is a request in flight, and the step that it carries out.
type unanswered struct {
	step    rules.Step
	request world.Request
}

// creates says whether it is the creation of a VolumeAttachment.
func (u unanswered) creates(name string) bool {
	return u.step.Do == rules.CreateAttachment && u.step.Attachment == name
}

// flies says whether a request for a volume is in flight.
func (c *cluster) flies(v ledger.VolumeID) bool {
	return slices.ContainsFunc(c.flying, func(u unanswered) bool { return u.step.Volume == v })
}

// land ends the flight of the i-th request: it is carried out, or never will be.
// The controller hears of it as of what others write.
func (c *cluster) land(i int, done bool) {
	u := c.flying[i]
	c.flying = slices.Delete(slices.Clone(c.flying), i, i+1)
	c.trace("in flight: %s: %s", c.stepText(u.step), map[bool]string{true: "done", false: "lost"}[done])
	if done {
		c.ask(u.request)
	}
}

// flight has what adds go unanswered, or ends what is in flight: done or lost.
func (s *script) flight(a args) {
	s.mutes = func() bool { return a.flag("unanswered") }
	for len(s.flying) > 0 && !a.flag("unanswered") {
		s.land(0, a.flag("done"))
	}
}

// newWorldFlight is a world in which every third creation or report is not answered. One
// volume is reported without an attachment: its kubelet waits for nothing else.
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

// landAll ends all flights: a new leader has waited for that, and so has the end of
// the faults.
func (w *randomWorld) landAll() {
	for len(w.flying) > 0 {
		w.land(0, w.below(2) == 0)
	}
}

// TestWorldFlight plays random worlds in which creations and reports are in flight for
// long: what they may attach counts, however long that takes and whoever goes meanwhile.
func TestWorldFlight(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		newWorldFlight(proptest.Bytes(t, 900)).play(t)
	})
}
