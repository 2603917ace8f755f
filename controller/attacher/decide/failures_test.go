// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

func TestSuccessForgetsFailures(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	for _, wait := range []time.Duration{1, 2, 4} {
		d.does("publish va-a id-a", failed(codes.Internal))
		d.wakes(wait * time.Second)
		d.pass(wait * time.Second)
	}
	d.does("publish va-a id-a", ok)
	d.see(attached("a"))
	d.pass(time.Second)
	d.tracker.Sighted("uid-a", false, d.now)
	d.does("publish va-a id-a", failed(codes.Internal))
	d.pass(time.Second / 2)
	d.tracker.Sighted("uid-a", false, d.now)
	d.wakes(time.Second / 2)
}

func TestDeletionForgetsFailures(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a", func(a *decide.Attachment) { a.Created = epoch.Add(time.Second) }), attached("b"))
	d.does("unpublish va-a id-a", failed(codes.Internal))
	d.offers("report-attach va-a: Internal")
	d.see(stamped("a", deleting))
	d.offers("unpublish va-a id-a")
}

// A failed write of attached is not told: the same write would tell it.
func TestWhichWriteFailed(t *testing.T) {
	for name, c := range map[string]struct {
		a    decide.Attachment
		step string
		told bool
	}{
		"PersistentVolume": {wanted("a", func(a *decide.Attachment) { a.PVStamped = false }), "stamp-pv va-a", true},
		"VolumeAttachment": {wanted("a"), "stamp va-a id-a", true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(c.a)
			d.does(c.step, refused)
			d.offers("report-attach va-a: refused")
			d.wakes(time.Second)
		})
	}
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", ok)
	d.does("mark-attached va-a", refused)
	d.offers()
	d.wakes(time.Second)
}

// A conflicting write is repeated three times at once, then after a pause.
func TestChangedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		a    decide.Attachment
		step string
	}{
		{wanted("a", func(a *decide.Attachment) { a.PVStamped = false }), "stamp-pv va-a"},
		{wanted("a"), "stamp va-a id-a"},
	} {
		d := newDesk(t)
		d.see(c.a)
		for range 3 {
			d.does(c.step, moved)
		}
		d.does(c.step, ok)
		for range 3 {
			d.does(c.step, moved)
		}
		d.does(c.step, moved)
		d.offers("report-attach va-a: changed")
		d.wakes(time.Second)
	}
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", ok)
	for range 4 {
		d.does("mark-attached va-a", moved)
	}
	d.offers("report-attach va-a: changed")
}

func TestStaysNowhere(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a", func(a *decide.Attachment) { a.NodeID = "" }))
	gone := attached("a", deleting, wantedAgain, func(a *decide.Attachment) { a.NodeID = "" })
	d.see(gone)
	s := d.starts("unpublish va-a id-a")
	gone.TargetID, gone.NoTarget = "", decide.Reason{Message: "no CSINode"}
	d.see(gone)
	d.ends(s, failed(codes.FailedPrecondition))
	d.pass(time.Minute)
	d.offers()
	d.pass(time.Second)
	d.offers("report-detach va-a: no CSINode")
}

func TestUnpublishEndsDoubt(t *testing.T) {
	d := newDesk(t)
	late := func(a *decide.Attachment) { a.Created = epoch.Add(time.Second) }
	d.see(stamped("a", late))
	d.does("publish va-a id-a", failed(codes.DeadlineExceeded))
	d.see(attached("b"))
	d.does("unpublish va-a id-a", ok)
	d.see(attached("b", deleting))
	d.does("unpublish va-b id-b", ok)
	d.does("release va-b", ok)
	d.tracker.Lose("uid-b", d.now)
	d.does("publish va-a id-a", failed(codes.Internal))
	d.see(stamped("a", late, deleting, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.offers("release va-a")
}

func TestWaysFailOnTheirOwn(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a", func(a *decide.Attachment) { a.Created = epoch.Add(time.Second) }))
	for _, wait := range []time.Duration{1, 2, 4} {
		d.does("publish va-a id-a", failed(codes.DeadlineExceeded))
		d.pass(wait * time.Second)
	}
	d.see(attached("b"))
	d.does("unpublish va-a id-a", failed(codes.Internal))
	d.wakes(time.Second)
	d.pass(time.Second)
	d.does("unpublish va-a id-a", ok)
	d.see(attached("b", deleting))
	d.does("unpublish va-b id-b", ok)
	d.does("release va-b", ok)
	d.tracker.Lose("uid-b", d.now)
	d.does("publish va-a id-a", failed(codes.Internal))
	d.wakes(time.Second)
}

// A timed-out publish may still take effect: a refused unpublish is then no proof.
func TestTimedOutPublishIsDoubted(t *testing.T) {
	d := newDesk(t)
	d.stamps()
	d.does("publish va-a id-a", failed(codes.DeadlineExceeded))
	d.see(stamped("a", deleting, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.pass(time.Second)
	d.offers("unpublish va-a id-a")
}

func TestRefusedPublishIsNotDoubted(t *testing.T) {
	d := newDesk(t)
	d.stamps()
	d.does("publish va-a id-a", failed(codes.FailedPrecondition))
	d.see(stamped("a", deleting, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.offers("release va-a")
}

// A written error is written again if another component has cleared it.
func TestToldAgain(t *testing.T) {
	d := newDesk(t)
	late := func(a *decide.Attachment) { a.Created = epoch.Add(time.Second) }
	d.see(stamped("a", late), wanted("b"))
	d.does("unpublish va-a id-a", failed(codes.Internal))
	d.does("report-attach va-a: Internal", ok)
	d.offers()
	d.pass(time.Second)
	s := d.starts("unpublish va-a id-a")
	d.tracker.Lose("uid-b", d.now)
	d.ends(s, ok)
	d.does("publish va-a id-a", failed(codes.Internal))
	d.offers("report-attach va-a: Internal")
}

func TestStampEndsNoBackoff(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*decide.Attachment)
		step   string
	}{
		"somebody has taken the node's ID off": {func(a *decide.Attachment) { a.NodeID = "" }, "stamp va-a id-a"},
		"the PersistentVolume has lost its finalizer": {func(a *decide.Attachment) {
			a.PVStamped, a.Mark = false, "touched"
		}, "stamp-pv va-a"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(stamped("a"))
			for _, wait := range []time.Duration{1, 2} {
				d.does("publish va-a id-a", failed(codes.Internal))
				d.pass(wait * time.Second)
			}
			d.see(stamped("a", c.change))
			s := d.starts(c.step)
			d.see(stamped("a"))
			d.ends(s, ok)
			d.does("publish va-a id-a", failed(codes.Internal))
			d.wakes(4 * time.Second)
		})
	}
}

// The driver's list contradicts its earlier answer: it is asked again.
func TestListedAfterUnpublish(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a", deleting))
	d.does("unpublish va-a id-a", ok)
	d.offers("release va-a")
	d.pass(time.Second)
	d.tracker.Sighted("uid-a", true, d.now)
	d.does("unpublish va-a id-a", failed(codes.Unavailable))
	d.offers("report-detach va-a: Unavailable")
	d.pass(time.Second)
	d.does("unpublish va-a id-a", ok)
	d.offers("release va-a")
}

// An unattached object with the finalizer at first sight may have another process's call under way.
func TestStampedByWhoeverCameBefore(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.see(stamped("a", deleting, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.pass(time.Second)
	d.offers("unpublish va-a id-a")
}

func TestDetachedStatusBacksOff(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	d.see(attached("a", kept))
	d.does("unpublish va-a id-a", ok)
	d.does("release va-a", refused)
	d.offers()
	d.wakes(time.Second)
	d.pass(time.Second)
	d.does("release va-a", ok)
	d.see(attached("a", kept, func(a *decide.Attachment) { a.Stamped = false }))
	d.does("mark-detached va-a", refused)
	d.offers()
	d.wakes(time.Second)
	d.pass(time.Second)
	d.offers("mark-detached va-a")
}

func TestKeptAndStays(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	d.see(attached("a", kept, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.does("release va-a", ok)
	d.see(attached("a", kept, wantedAgain, func(a *decide.Attachment) { a.Stamped = false }))
	d.offers()
}

func TestStaysWhereTheObjectSays(t *testing.T) {
	bare := func(a *decide.Attachment) { a.NodeID = "" }
	d := newDesk(t)
	d.see(attached("a", bare))
	d.see(attached("a", bare, deleting, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.pass(time.Second)
	d.offers("unpublish va-a id-a")
}

func TestOwnWriteComesToLight(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", ok)
	d.does("mark-attached va-a", refused)
	d.see(attached("a"))
	d.see(attached("a", deleting, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.offers("release va-a")
}

func TestGoneFromNowhere(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a", func(a *decide.Attachment) { a.NodeID, a.TargetID = "", "" }))
	d.tracker.Lose("uid-a", d.now)
	if d.tracker.Knows("uid-a") {
		t.Error("still in the tracker")
	}
}
