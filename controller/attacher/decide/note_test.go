// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

func TestDriverThatPublishesNothing(t *testing.T) {
	only := func(r *decide.Rules) { r.Publishes = false }
	d := newDesk(t, only)
	d.see(wanted("a", deleting))
	d.offers()

	d = newDesk(t, only)
	d.see(wanted("a"))
	d.does("mark-attached va-a", ok)
	d.see(wanted("a", func(a *decide.Attachment) { a.Attached = true }))
	d.offers()
	d.tracker.Lose("uid-a", d.now)
	if d.tracker.Knows("uid-a") {
		t.Error("what is gone is still in the tracker")
	}
}

func TestErrorIsCleared(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", ok)
	d.see(attached("a", func(a *decide.Attachment) { a.AttachError.Message = "old" }))
	d.offers("mark-attached va-a")
}

func TestVolumeComesToLight(t *testing.T) {
	next := func(a *decide.Attachment) { a.Name, a.UID = "next", "uid-next" }
	d := newDesk(t)
	d.see(attached("a"))
	d.tracker.Lose("uid-a", d.now)
	d.see(wanted("a", next, func(a *decide.Attachment) { a.Volume = "" }))
	d.see(wanted("a", next))
	if d.tracker.Knows("uid-a") {
		t.Error("the one that is gone still answers for the volume, too")
	}
}
