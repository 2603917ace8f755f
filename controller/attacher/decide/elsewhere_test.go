// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestWhoGivesWayIsUnpublished(t *testing.T) {
	young := func(a *decide.Attachment) { a.Created = epoch.Add(time.Second) }
	for name, c := range map[string]struct {
		a      decide.Attachment
		listed bool // as not there
		want   []string
	}{
		"it may be there":             {stamped("b", young), false, []string{"unpublish va-b id-b"}},
		"it is attached":              {attached("b", young), true, nil},
		"no call can be put together": {stamped("b", young, func(a *decide.Attachment) { a.NoUnpublish.Message = "no Secret" }), false, nil},
		"the node has no ID": {stamped("b", young, func(a *decide.Attachment) {
			a.NodeID, a.TargetID, a.NoTarget.Message = "", "", "no CSINode"
		}), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(attached("a"), c.a)
			if c.listed {
				d.pass(time.Second)
				d.tracker.Sighted(c.a.UID, false, d.now)
			}
			d.offers(c.want...)
		})
	}
}

func TestWhyAnotherNodeKeepsTheVolume(t *testing.T) {
	waits := "report-attach va-b: the volume may be at node a: waiting until VolumeAttachment va-a is detached"
	young := func(a *decide.Attachment) { a.Created = epoch.Add(time.Second) }
	for name, c := range map[string]struct {
		play func(d *desk)
		want string
	}{
		"it is attached there": {func(d *desk) { d.see(attached("a")) }, waits},
		"an attach has failed": {func(d *desk) {
			d.see(stamped("a"))
			d.does("publish va-a id-a", failed(codes.Internal))
		}, waits},
		"a detach has failed": {func(d *desk) {
			d.see(attached("a"))
			d.see(attached("a", deleting))
			d.does("unpublish va-a id-a", failed(codes.Internal))
		}, waits + ", which failed: Internal"},
		"a detach has failed, and an attach succeeded since": {func(d *desk) {
			d.see(stamped("a", young), attached("c"))
			d.does("unpublish va-a id-a", failed(codes.Internal))
			d.see(attached("c", deleting))
			d.does("unpublish va-c id-c", ok)
			d.does("release va-c", ok)
			d.tracker.Lose("uid-c", d.now)
			d.pass(time.Second)
			d.does("publish va-a id-a", ok)
			d.see(attached("a", young))
		}, waits},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			c.play(d)
			d.see(wanted("b", young))
			d.tracker.Next(handle, d.now) // from here on it waits
			d.pass(time.Minute)
			steps, _ := d.tracker.Next(handle, d.now)
			for _, s := range steps {
				if s.Name == "va-b" && text(s) == c.want {
					return
				}
			}
			t.Errorf("the steps are %+v, want among them %q", steps, c.want)
		})
	}
}

func TestPublishedAnewAtTheNewID(t *testing.T) {
	moves := func(a *decide.Attachment) { a.TargetID = "id-a2" }
	d := newDesk(t)
	d.see(attached("a"))
	d.see(attached("a", moves))
	d.pass(time.Second)
	d.tracker.Sighted("uid-a", false, d.now)
	d.does("unpublish va-a id-a", ok)
	d.offers("stamp va-a id-a2")
}

func TestUnpublishedGoesFirstNoMore(t *testing.T) {
	moves := func(a *decide.Attachment) { a.TargetID, a.Created = "id-a2", epoch.Add(time.Second) }
	d := newDesk(t)
	d.see(attached("a", moves))
	d.pass(time.Second)
	d.tracker.Sighted("uid-a", false, d.now)
	d.does("unpublish va-a id-a", ok)
	d.see(wanted("b"))
	d.offers("stamp va-b id-b")
}

// A user may take the node's ID off the object.
func TestPublishedWhereItWasCalled(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", ok)
	d.see(attached("a", deleting, func(a *decide.Attachment) { a.NodeID, a.TargetID = "", "id-a2" }))
	d.offers("unpublish va-a id-a")
}

func TestFinalizerBeforePublish(t *testing.T) {
	d := newDesk(t)
	d.see(wanted("a", func(a *decide.Attachment) { a.NodeID = "id-a" }))
	d.offers("stamp va-a id-a")
}

// A foreign finalizer still keeps the object: the volume may be there.
func TestFinalizerTakenOffByHand(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.see(wanted("a", kept, func(a *decide.Attachment) { a.NodeID = "id-a" }))
	d.offers("unpublish va-a id-a")
}

func TestSecretIsReadForEachCall(t *testing.T) {
	secret := func(a *decide.Attachment) { a.NeedsSecret = true }
	d := newDesk(t)
	d.see(stamped("a", secret))
	d.does("read-secret va-a", ok)
	d.does("publish va-a id-a", ok)
	d.see(attached("a", secret, deleting))
	d.does("read-secret va-a", ok)
	d.does("unpublish va-a id-a", ok)
	d.pass(time.Second)
	d.tracker.Sighted("uid-a", true, d.now)
	d.offers("read-secret va-a")

	d = newDesk(t)
	d.see(wanted("a", secret))
	d.does("read-secret va-a", ok)
	d.does("stamp va-a id-a", refused)
	d.pass(time.Second)
	d.offers("read-secret va-a")
}

// A refusal keeps the doubt of an earlier call.
func TestRefusalAfterTimeout(t *testing.T) {
	d := newDesk(t)
	d.stamps()
	d.does("publish va-a id-a", failed(codes.DeadlineExceeded))
	d.pass(time.Second)
	d.does("publish va-a id-a", failed(codes.FailedPrecondition))
	d.see(stamped("a", deleting, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.pass(time.Minute)
	d.offers("unpublish va-a id-a")
}

func TestListedBeforeALook(t *testing.T) {
	d := newDesk(t, looks)
	d.see(attached("a"))
	d.see(attached("a", deleting, wantedAgain))
	before := d.now
	d.pass(time.Second)
	d.does("look va-a id-a", decide.Result{There: true})
	if d.tracker.Sighted("uid-a", false, before) != nil {
		t.Error("the list from before the look is believed")
	}
	d.offers("release va-a")
}

func TestUnplacedHoldsBack(t *testing.T) {
	name := func(node string) func(*decide.Attachment) {
		return named(ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: string(handle)}, ledger.NodeName(node)))
	}
	unplaced := func(a *decide.Attachment) { a.Volume, a.Exclusive = "", false }
	for what, c := range map[string]struct {
		other decide.Attachment
		waits bool
	}{
		"attached elsewhere":           {attached("b", name("b"), unplaced), true},
		"not attached":                 {wanted("b", name("b"), unplaced), false},
		"under another name":           {attached("b", unplaced), false},
		"by the name of another node":  {attached("b", name("c"), unplaced), false},
		"attached at the same place":   {attached("a", name("a"), unplaced), false},
		"target of the volume's moves": {attached("b", name("b"), unplaced, func(a *decide.Attachment) { a.Beside = "a" }), false},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDesk(t)
			d.see(stamped("a"), c.other)
			want := []string{"publish va-a id-a"}
			if c.waits {
				want = nil
			}
			d.offers(want...)
		})
	}
}

func TestStaysBesideItsHeir(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	d.see(attached("a", deleting, wantedAgain), wanted("a", named("z")))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.offers("release va-a", "stamp z id-a")
}

// A finalizer leaves a doubt only if another component wrote it before any call of this process.
func TestWhichChangeIsDoubted(t *testing.T) {
	stays := func(t *testing.T, d *desk) {
		t.Helper()
		d.see(stamped("a", deleting, wantedAgain))
		d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
		d.offers("release va-a")
	}
	t.Run("the object was touched", func(t *testing.T) {
		d := newDesk(t)
		d.see(wanted("a"))
		d.does("stamp va-a id-a", moved)
		s := d.starts("stamp va-a id-a")
		d.see(stamped("a"))
		d.ends(s, ok)
		stays(t, d)
	})
	t.Run("the node's ID was taken off after a call", func(t *testing.T) {
		d := newDesk(t)
		d.stamps()
		d.does("publish va-a id-a", failed(codes.FailedPrecondition))
		d.see(stamped("a", func(a *decide.Attachment) { a.NodeID = "" }))
		d.pass(time.Minute)
		d.does("stamp va-a id-a", moved)
		stays(t, d)
	})
}
