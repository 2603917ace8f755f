// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

func TestRulesAreChecked(t *testing.T) {
	good := decide.Rules{Driver: driver, Backoff: decide.Backoff{First: time.Second, Max: time.Second}, Random: func() float64 { return 0 }}
	if err := good.Validate(); err != nil {
		t.Errorf("good rules are refused: %v", err)
	}
	for name, change := range map[string]func(*decide.Rules){
		"no driver":           func(r *decide.Rules) { r.Driver = "" },
		"no first wait":       func(r *decide.Rules) { r.Backoff.First = 0 },
		"a longest too short": func(r *decide.Rules) { r.Backoff.Max = r.Backoff.First - 1 },
		"no random numbers":   func(r *decide.Rules) { r.Random = nil },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := decide.NewTracker(bad); err == nil {
			t.Errorf("%s: a tracker is made", name)
		}
	}
}

func TestActions(t *testing.T) {
	for action, want := range map[decide.Action]struct {
		text          string
		call, records bool
	}{
		decide.StampPV:      {"stamp-pv", false, false},
		decide.ReadSecret:   {"read-secret", false, false},
		decide.Stamp:        {"stamp", false, false},
		decide.Publish:      {"publish", true, false},
		decide.MarkAttached: {"mark-attached", false, true},
		decide.Look:         {"look", true, false},
		decide.Unpublish:    {"unpublish", true, false},
		decide.Release:      {"release", false, true},
		decide.MarkDetached: {"mark-detached", false, true},
		decide.ReportAttach: {"report-attach", false, false},
		decide.ReportDetach: {"report-detach", false, false},
	} {
		if action.String() != want.text || action.Call() != want.call || action.Records() != want.records {
			t.Errorf("%s: a call: %v, records: %v; want %v", action, action.Call(), action.Records(), want)
		}
	}
}

func TestPushesBack(t *testing.T) {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		want := code == codes.ResourceExhausted || code == codes.Unavailable || code == codes.Aborted || code == codes.DeadlineExceeded
		if decide.PushesBack(code) != want {
			t.Errorf("%s: %v, want %v", code, !want, want)
		}
	}
}

// A person's node ID on an object gives the volume's place.
func TestAPersonKnowsBetter(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", ok)
	d.see(attached("a"))
	d.see(attached("a", func(a *decide.Attachment) { a.NodeID = "id-x" }))
	d.see(attached("a", deleting, func(a *decide.Attachment) { a.NodeID = "id-x" }))
	d.offers("unpublish va-a id-x")
}

func TestWhenToLook(t *testing.T) {
	for name, c := range map[string]struct {
		play func(d *desk)
		want string
	}{
		"wanted again": {func(d *desk) {
			d.see(attached("a"))
			d.see(attached("a", deleting, wantedAgain))
		}, "look va-a id-a"},
		"not wanted": {func(d *desk) {
			d.see(attached("a"))
			d.see(attached("a", deleting))
		}, "unpublish va-a id-a"},
		"first seen when it was being deleted": {func(d *desk) {
			d.see(attached("a", deleting, wantedAgain))
		}, "unpublish va-a id-a"},
		"a call may be under way": {func(d *desk) {
			d.see(stamped("a"))
			d.does("publish va-a id-a", failed(codes.DeadlineExceeded))
			d.see(stamped("a", deleting, wantedAgain))
		}, "unpublish va-a id-a"},
		"the driver lists it as not there": {func(d *desk) {
			d.see(attached("a"))
			d.see(attached("a", deleting, wantedAgain))
			d.pass(time.Second)
			d.tracker.Sighted("uid-a", false, d.now)
		}, "unpublish va-a id-a"},
		"the driver did not know": {func(d *desk) {
			d.see(attached("a"))
			d.see(attached("a", deleting, wantedAgain))
			d.does("look va-a id-a", failed(codes.NotFound))
		}, "unpublish va-a id-a"},
		"it is there": {func(d *desk) {
			d.see(attached("a"))
			d.see(attached("a", deleting, wantedAgain))
			d.does("look va-a id-a", decide.Result{There: true})
		}, "release va-a"},
		"unpublished since it was there": {func(d *desk) {
			d.see(attached("a"))
			d.see(attached("a", deleting, wantedAgain))
			d.does("look va-a id-a", decide.Result{There: true})
			d.see(attached("a", deleting))
			d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
			d.see(attached("a", deleting, wantedAgain))
		}, "release va-a"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, looks)
			c.play(d)
			d.offers(c.want)
		})
	}
}

func TestLookWithoutSecret(t *testing.T) {
	secret := func(a *decide.Attachment) { a.NeedsSecret = true }
	d := newDesk(t, looks)
	d.see(attached("a", secret))
	d.see(attached("a", secret, deleting, wantedAgain))
	d.does("look va-a id-a", failed(codes.NotFound))
	d.does("read-secret va-a", ok)
	d.offers("unpublish va-a id-a")
}

func TestLookIsACall(t *testing.T) {
	d := newDesk(t, looks)
	d.see(attached("a"))
	d.see(attached("a", deleting, wantedAgain))
	s := d.starts("look va-a id-a")
	d.see(attached("a", deleting, named("z")))
	d.offers()
	d.ends(s, failed(codes.Internal))
	d.offers("unpublish va-a id-a")
}

func TestMigrationBothWays(t *testing.T) {
	target := func(a *decide.Attachment) { a.Beside, a.Created = "a", epoch.Add(time.Second) }
	d := newDesk(t)
	d.see(attached("a"), stamped("b", target))
	d.does("publish va-b id-b", ok)
	d.see(attached("b", target))
	d.pass(time.Second)
	d.tracker.Sighted("uid-a", false, d.now)
	d.offers("publish va-a id-a")

	for name, other := range map[string]func(*decide.Attachment){
		"beside nobody":                  func(*decide.Attachment) {},
		"beside another node":            func(a *decide.Attachment) { a.Beside = "c" },
		"made before what it is beside":  func(a *decide.Attachment) { a.Beside, a.Created = "a", epoch.Add(-1) },
		"older transitions than the one": func(a *decide.Attachment) { a.Beside, a.Transitions = "a", 1 },
	} {
		d := newDesk(t)
		d.see(attached("a", func(a *decide.Attachment) { a.Transitions = 2 }), stamped("b", func(a *decide.Attachment) { a.Transitions = 2 }, other))
		steps, _ := d.tracker.Next(handle, d.now)
		for _, s := range steps {
			if s.Do == decide.Publish {
				t.Errorf("%s: published beside the volume's place", name)
			}
		}
	}
	d = newDesk(t)
	same := func(a *decide.Attachment) { a.Transitions = 2 }
	d.see(attached("a", same), stamped("b", same, func(a *decide.Attachment) { a.Beside = "a" }))
	d.offers("publish va-b id-b")
}

// The component may also have published the volume, at the ID that it wrote.
func TestSomebodyElseStamps(t *testing.T) {
	for name, play := range map[string]func(d *desk, theirs decide.Attachment){
		"while this process writes": func(d *desk, theirs decide.Attachment) {
			s := d.starts("stamp va-a id-a")
			d.see(theirs)
			d.ends(s, moved)
		},
		"before this process has begun": func(d *desk, theirs decide.Attachment) { d.see(theirs) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(wanted("a"))
			theirs := func(changes ...func(*decide.Attachment)) decide.Attachment {
				return stamped("a", append(changes, func(a *decide.Attachment) { a.NodeID = "id-x" })...)
			}
			play(d, theirs())
			d.offers("unpublish va-a id-x")
			d.see(theirs(deleting, wantedAgain, func(a *decide.Attachment) { a.TargetID = "id-x" }))
			d.does("unpublish va-a id-x", failed(codes.FailedPrecondition)) // says nothing of their call
			d.pass(time.Second)
			d.does("unpublish va-a id-x", ok)
			d.offers("release va-a")
		})
	}
}

func TestSomebodyElseAttaches(t *testing.T) {
	d := newDesk(t)
	d.see(wanted("a"))
	d.see(wanted("a", func(a *decide.Attachment) { a.Attached = true }))
	d.offers()
	d.see(wanted("b"))
	d.offers()
}

func TestFence(t *testing.T) {
	at := func(n int64) func(*decide.Attachment) { return func(a *decide.Attachment) { a.Transitions = n } }
	refused := "report-attach va-b: refused: made at transition 1 of the volume, which is at 2 by now; delete this VolumeAttachment"
	waits := "report-attach va-b: the volume may be at node a: waiting until VolumeAttachment va-a is detached"
	for name, c := range map[string]struct {
		play func(d *desk)
		want string
	}{
		"an attachment has them": {func(d *desk) { d.see(wanted("a", at(2), deleting, func(a *decide.Attachment) { a.Kept = true })) }, refused},
		"it had them, and is gone": {func(d *desk) {
			d.see(wanted("a", at(2)))
			d.tracker.Lose("uid-a", d.now)
		}, "stamp va-b id-b"},
		"an attachment has got them": {func(d *desk) {
			d.see(wanted("a", at(0)))
			d.see(wanted("a", at(2), deleting, func(a *decide.Attachment) { a.Kept = true }))
		}, refused},
		"it is gone, and has left the volume": {func(d *desk) {
			d.see(attached("a", at(2)))
			d.tracker.Lose("uid-a", d.now)
		}, waits},
		"it is gone and has left the volume, and a detach there has failed": {func(d *desk) {
			d.see(attached("a", at(2)))
			d.tracker.Lose("uid-a", d.now)
			d.pass(2 * time.Minute)
			d.does("unpublish va-a id-a", failed(codes.Internal))
		}, waits + ", which failed: Internal"},
		"one that is gone has left the volume, and another has them": {func(d *desk) {
			d.see(attached("a", at(2)), wanted("c", at(2), deleting, func(a *decide.Attachment) { a.Kept = true }))
			d.tracker.Lose("uid-a", d.now)
		}, refused},
		"it is gone, and left nothing": {func(d *desk) {
			d.see(attached("a", at(2)), attached("a", at(2), deleting))
			d.does("unpublish va-a id-a", ok)
			d.does("release va-a", ok)
			d.tracker.Lose("uid-a", d.now)
		}, "stamp va-b id-b"},
		"none had any": {func(d *desk) {
			d.see(wanted("a", at(0)))
			d.tracker.Lose("uid-a", d.now)
		}, "stamp va-b id-b"},
		"the same": {func(d *desk) {
			d.see(wanted("a", at(1)))
			d.tracker.Lose("uid-a", d.now)
		}, "stamp va-b id-b"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			c.play(d)
			d.see(wanted("b", at(1)))
			d.offers(c.want)
		})
	}
}

func TestNoFenceOfASharedVolume(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a", shared, func(a *decide.Attachment) { a.Transitions = 2 }))
	d.see(wanted("b", shared, func(a *decide.Attachment) { a.Transitions = 1 }))
	d.offers("stamp va-b id-b")
}

// The list counts as of its request, without a later or running call.
func TestWhatIsListed(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	before := d.now
	d.pass(time.Second)
	if got := d.tracker.Sighted("uid-a", false, d.now); len(got) != 1 || got[0] != handle {
		t.Errorf("something new about %q, want the volume", got)
	}
	s := d.starts("publish va-a id-a")
	d.pass(time.Second)
	if d.tracker.Sighted("uid-a", false, d.now) != nil {
		t.Error("believed with a call under way")
	}
	d.pass(time.Second)
	d.ends(s, ok)
	for _, asOf := range []time.Time{before, d.now.Add(-time.Second), d.now} {
		if d.tracker.Sighted("uid-a", false, asOf) != nil {
			t.Errorf("believed as of %s, and a call has ended at %s", asOf, d.now)
		}
	}
	d.offers()
	d.see(attached("a", deleting))
	s = d.starts("unpublish va-a id-a")
	d.pass(time.Second)
	d.ends(s, failed(codes.Internal))
	if d.tracker.Sighted("uid-a", true, d.now) != nil || d.tracker.Sighted("uid-b", true, d.now) != nil {
		t.Error("believed as of the end of the call, or of nobody")
	}
	d.pass(time.Second / 2)
	d.tracker.Sighted("uid-a", true, d.now)
	d.wakes(time.Second / 2)
	d.tracker.Lose("uid-a", d.now)
	if d.tracker.Sighted("uid-a", true, d.now) != nil {
		t.Error("believed of an attachment that is gone")
	}
}

func TestListedWhereItIsWanted(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", failed(codes.Internal))
	d.pass(time.Second / 4)
	d.tracker.Sighted("uid-a", false, d.now)
	d.wakes(time.Second * 3 / 4)
	d.tracker.Sighted("uid-a", true, d.now)
	d.offers("publish va-a id-a")
}

func TestAttachedWithoutTheFinalizer(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a", func(a *decide.Attachment) { a.Stamped = false }))
	d.offers()
}

func TestListedWhereItIsAttached(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	d.does("publish va-a id-a", ok)
	d.see(attached("a", func(a *decide.Attachment) { a.AttachError.Message = "old" }))
	d.does("mark-attached va-a", refused)
	d.pass(time.Second / 4)
	d.tracker.Sighted("uid-a", true, d.now)
	d.offers()
	d.wakes(time.Second * 3 / 4)
}

func TestListedWhereItIsDetached(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a", deleting))
	d.does("unpublish va-a id-a", failed(codes.Internal))
	d.pass(time.Second / 4)
	d.tracker.Sighted("uid-a", true, d.now)
	d.wakes(time.Second * 3 / 4)
}

// The attachment with the volume goes first, but all wait for an attachment that can't be published.
func TestWhoGoesFirst(t *testing.T) {
	late := func(a *decide.Attachment) { a.Created = epoch.Add(time.Second) }
	d := newDesk(t)
	d.see(stamped("a", late))
	d.does("publish va-a id-a", ok)
	d.pass(time.Second)
	d.tracker.Sighted("uid-a", false, d.now)
	d.see(wanted("b"))
	d.offers("publish va-a id-a")

	for name, other := range map[string]struct {
		change func(*decide.Attachment)
		first  bool
	}{
		"older":                        {func(*decide.Attachment) {}, true},
		"as old, and its name is less": {func(a *decide.Attachment) { late(a); a.Name = "a" }, true},
		"as old, and its UID is less":  {func(a *decide.Attachment) { late(a); a.Name, a.UID = "va-b", "a" }, true},
		"as old, and its UID is more":  {func(a *decide.Attachment) { late(a); a.Name, a.UID = "va-b", "z" }, false},
		"younger":                      {func(a *decide.Attachment) { a.Created = epoch.Add(time.Minute) }, false},
		"younger, with newer transitions": {func(a *decide.Attachment) {
			a.Created, a.Transitions = epoch.Add(time.Minute), 2
		}, true},
		"older, at a node without an ID": {func(a *decide.Attachment) {
			a.TargetID, a.NoTarget.Message = "", "no CSINode"
		}, false},
		"older, and can't be published": {func(a *decide.Attachment) { a.NoPublish.Message = "no" }, false},
		"older, and is being deleted":   {func(a *decide.Attachment) { a.Deleting, a.Kept = true, true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(wanted("b", late), wanted("c", other.change))
			steps, _ := d.tracker.Next(handle, d.now)
			var nodes []string
			for _, s := range steps {
				if s.Do == decide.Stamp {
					nodes = append(nodes, s.NodeID)
				}
			}
			want := "id-b"
			if other.first {
				want = "id-c"
			}
			if len(nodes) != 1 || nodes[0] != want {
				t.Errorf("first is %q, want %s", nodes, want)
			}
		})
	}
}

func TestStepsInOrder(t *testing.T) {
	d := newDesk(t)
	for _, name := range []string{"b", "d", "a", "c"} {
		d.see(stamped(name, shared, named(name), func(a *decide.Attachment) { a.UID = string(rune(255 - name[0])) }))
	}
	d.offers("publish a id-a", "publish b id-b", "publish c id-c", "publish d id-d")
	for _, name := range []string{"y", "x"} {
		d.see(stamped("z", shared, named("same"), func(a *decide.Attachment) { a.UID, a.NoPublish.Message = name, name }))
	}
	d.pass(time.Minute)
	d.offers("publish a id-a", "publish b id-b", "publish c id-c", "publish d id-d")
	d.pass(time.Second)
	d.offers("publish a id-a", "publish b id-b", "publish c id-c", "publish d id-d", "report-attach same: x", "report-attach same: y")
}

func TestUsedHere(t *testing.T) {
	for name, c := range map[string]struct {
		other decide.Attachment
		want  []string
	}{
		"attached":             {attached("a", named("other")), nil},
		"may be attached":      {stamped("a", named("other")), []string{"publish other id-a"}},
		"not attached yet":     {wanted("a", named("other")), []string{"stamp other id-a", "unpublish va-a id-a"}},
		"attached elsewhere":   {attached("b", named("other"), shared), []string{"unpublish va-a id-a"}},
		"another machine":      {attached("a", named("other"), shared, func(a *decide.Attachment) { a.NodeID = "id-a2" }), []string{"unpublish va-a id-a"}},
		"is being deleted too": {attached("a", named("other"), deleting), []string{"unpublish other id-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(attached("a", shared), c.other)
			d.see(attached("a", shared, deleting))
			d.offers(c.want...)
		})
	}
	d := newDesk(t)
	d.see(attached("a"), attached("a", named("other")), attached("a", named("z"))) // the first is told
	d.see(attached("a", deleting))
	d.offers()
	d.wakes(time.Second)
	d.pass(time.Second)
	d.offers("report-detach va-a: the volume stays at node a: VolumeAttachment other wants it there")
}

func TestHurried(t *testing.T) {
	for name, change := range map[string]func(*decide.Attachment){
		"somebody has touched it":       func(a *decide.Attachment) { a.Mark = "touched" },
		"the node has another ID":       func(a *decide.Attachment) { a.TargetID = "id-a2" },
		"the volume can be published":   func(a *decide.Attachment) { a.NoPublish.Message = "another" },
		"it can be unpublished":         func(a *decide.Attachment) { a.NoUnpublish.Message = "another" },
		"somebody has written its node": func(a *decide.Attachment) { a.NodeID = "id-x" },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(wanted("a"))
			d.does("stamp va-a id-a", refused)
			d.see(wanted("a"))
			d.pass(time.Second / 2)
			d.wakes(time.Second / 2)
			d.see(wanted("a", change))
			d.see(wanted("a"))
			d.offers("stamp va-a id-a")
		})
	}
}

func TestStaysBesideOthers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*decide.Attachment)
		want   []string
	}{
		"shared":    {shared, []string{"release va-a", "stamp va-b id-b"}},
		"exclusive": {func(*decide.Attachment) {}, []string{"report-detach va-a: FailedPrecondition"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.see(attached("a", c.change), wanted("b", c.change))
			d.see(attached("a", c.change, deleting, wantedAgain))
			d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
			d.offers(c.want...)
		})
	}
}

// The attachment must be current, and no other call for its node under way.
func TestStaysOnlyUndisturbed(t *testing.T) {
	d := newDesk(t)
	old := func(a *decide.Attachment) { a.Transitions = 1 }
	newer := func(a *decide.Attachment) { a.Transitions, a.Kept = 2, true }
	d.see(attached("a", old), wanted("b", newer), wanted("b", newer, deleting)) // an attachment that does not want it any more, and is there
	d.see(attached("a", old, deleting, wantedAgain))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.pass(time.Second)
	d.offers("unpublish va-a id-a")

	d = newDesk(t)
	d.see(attached("a", shared))
	d.see(attached("a", shared, deleting, wantedAgain), wanted("a", shared, named("z")))
	d.does("unpublish va-a id-a", failed(codes.FailedPrecondition))
	d.offers("release va-a", "stamp z id-a")
	d.see(stamped("a", shared, named("z"), deleting))
	d.starts("unpublish z id-a")
	d.pass(time.Minute)
	d.offers()
}
