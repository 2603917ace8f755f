// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

// crowded is a desk with n pushed-back volumes, each at its own node or all at node a.
func crowded(t *testing.T, n int, code codes.Code, oneNode bool) *desk {
	t.Helper()
	d := newDesk(t)
	for i := range n {
		d.see(inCrowd(i, oneNode))
		d.pushedBack(i, oneNode, code)
		d.pass(time.Second)
	}
	return d
}

func disk(i int) decide.VolumeID { return decide.VolumeID("disk-" + strconv.Itoa(i)) }

func inCrowd(i int, oneNode bool, changes ...func(*decide.Attachment)) decide.Attachment {
	node := "a"
	if !oneNode {
		node = "n" + strconv.Itoa(i)
	}
	return stamped(node, append([]func(*decide.Attachment){of(disk(i))}, changes...)...)
}

func (d *desk) pushedBack(i int, oneNode bool, code codes.Code) []decide.VolumeID {
	a := inCrowd(i, oneNode)
	s := d.startsOf(disk(i), "publish "+a.Name+" "+a.NodeID)
	if code == codes.OK {
		return d.ends(s, ok)
	}
	return d.ends(s, failed(code))
}

// Three pushed-back attachments make a crowd, unless all are at one full node.
func TestWhoIsACrowd(t *testing.T) {
	for name, c := range map[string]struct {
		n       int
		code    codes.Code
		oneNode bool
		want    bool
	}{
		"two":                         {2, codes.Unavailable, false, false},
		"three":                       {3, codes.Unavailable, false, true},
		"three of a node":             {3, codes.Unavailable, true, true},
		"three of a node that's full": {3, codes.ResourceExhausted, true, false},
		"three of full nodes":         {3, codes.ResourceExhausted, false, true},
		"three that are refused":      {3, codes.Internal, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := crowded(t, c.n, c.code, c.oneNode).tracker.Crowded(); got != c.want {
				t.Errorf("a crowd: %v, want %v", got, c.want)
			}
		})
	}
}

func TestSuccessEndsAStreak(t *testing.T) {
	d := crowded(t, 2, codes.Unavailable, false)
	d.see(inCrowd(2, false))
	d.pushedBack(2, false, codes.OK)
	d.see(inCrowd(3, false))
	d.pushedBack(3, false, codes.Unavailable)
	if d.tracker.Crowded() {
		t.Error("three that were pushed back are a crowd, with a success in between")
	}
}

func TestDeletionLeavesAStreak(t *testing.T) {
	d := crowded(t, 2, codes.Unavailable, false)
	d.see(inCrowd(0, false, deleting))
	d.see(inCrowd(3, false))
	d.pushedBack(3, false, codes.Unavailable)
	if d.tracker.Crowded() {
		t.Error("two that were pushed back are a crowd, with one that is being deleted")
	}
}

func TestWhenACrowdEnds(t *testing.T) {
	d := crowded(t, 3, codes.Unavailable, false)
	for i := range 3 {
		d.see(inCrowd(i, false))
	}
	if !d.tracker.Crowded() {
		t.Error("a crowd is none any more since it was seen again")
	}
	for i := range 3 {
		if !d.tracker.Crowded() {
			t.Errorf("no crowd with %d of it left", 3-i)
		}
		d.see(inCrowd(i, false, deleting))
	}
	if d.tracker.Crowded() {
		t.Error("a crowd of which all are being deleted")
	}

	d = crowded(t, 3, codes.Unavailable, false)
	for i := range 3 {
		a := inCrowd(i, false)
		if !d.tracker.Crowded() {
			t.Errorf("no crowd with %d of it left", 3-i)
		}
		d.tracker.Lose(a.UID, d.now)
	}
	if d.tracker.Crowded() {
		t.Error("a crowd of which all are gone")
	}
}

func TestTwoForASuccess(t *testing.T) {
	d := crowded(t, 6, codes.Unavailable, false)
	d.pass(time.Minute)
	got := d.pushedBack(3, false, codes.OK)
	if want := []decide.VolumeID{disk(3), disk(0), disk(1)}; !slices.Equal(got, want) {
		t.Errorf("there is something new about %q, want %q", got, want)
	}
	if d.tracker.Crowded() {
		t.Error("a crowd, and a call has succeeded")
	}
	if got, want := d.pushedBack(0, false, codes.OK), []decide.VolumeID{disk(0), disk(2), disk(4)}; !slices.Equal(got, want) {
		t.Errorf("there is something new about %q, want %q", got, want)
	}
	if got, want := d.pushedBack(1, false, codes.OK), []decide.VolumeID{disk(1), disk(5)}; !slices.Equal(got, want) {
		t.Errorf("there is something new about %q, want %q", got, want)
	}
}

// A crowd is tried every 30 s at the latest.
func TestACrowdIsProbed(t *testing.T) {
	d := crowded(t, 3, codes.Unavailable, false)
	for range 8 {
		d.pass(10 * time.Minute)
		for i := range 3 {
			d.pushedBack(i, false, codes.Unavailable)
		}
	}
	due := func() (first time.Duration, others int) {
		first = time.Hour
		for i := range 3 {
			_, wake := d.tracker.Next(disk(i), d.now)
			if wait := wake.Sub(d.now); wait <= 30*time.Second {
				first = min(first, wait)
			} else {
				others++
			}
		}
		return first, others
	}
	if first, others := due(); first != 30*time.Second || others != 2 {
		t.Errorf("one is due after %s and %d later than 30 s, want 30s and 2", first, others)
	}
}

func TestRoom(t *testing.T) {
	full := func(t *testing.T) *desk {
		t.Helper()
		d := newDesk(t)
		d.see(attached("a", of("disk-9")))
		return d
	}
	room := func(d *desk) []decide.VolumeID {
		d.see(attached("a", of("disk-9"), deleting))
		return d.ends(d.startsOf("disk-9", "unpublish va-a-disk-9 id-a"), ok)
	}
	refuse := func(d *desk, i int) {
		d.see(inCrowd(i, true))
		d.pushedBack(i, true, codes.ResourceExhausted)
	}
	for name, c := range map[string]struct {
		play func(d *desk)
		want []decide.VolumeID
	}{
		"nobody waits": {func(*desk) {}, []decide.VolumeID{"disk-9"}},
		"the first is first": {func(d *desk) {
			for i := range 8 {
				refuse(d, 8-i)
				d.pass(time.Millisecond)
			}
		}, []decide.VolumeID{"disk-9", "disk-8"}},
		"at the same time: by UID": {func(d *desk) {
			for i := range 8 {
				refuse(d, 8-i)
			}
		}, []decide.VolumeID{"disk-9", "disk-1"}},
		"at another node": {func(d *desk) {
			d.see(inCrowd(1, false))
			d.pushedBack(1, false, codes.ResourceExhausted)
		}, []decide.VolumeID{"disk-9"}},
		"refused for something else": {func(d *desk) {
			d.see(inCrowd(1, true))
			d.pushedBack(1, true, codes.Internal)
		}, []decide.VolumeID{"disk-9"}},
		"being deleted": {func(d *desk) {
			refuse(d, 1)
			d.see(inCrowd(1, true, deleting))
		}, []decide.VolumeID{"disk-9"}},
		"gone": {func(d *desk) {
			refuse(d, 1)
			d.see(inCrowd(1, true, deleting))
			d.ends(d.startsOf("disk-1", "unpublish va-a-disk-1 id-a"), ok)
			d.tracker.Lose(inCrowd(1, true).UID, d.now)
		}, []decide.VolumeID{"disk-9"}},
		"gone, and its deletion was never seen": {func(d *desk) {
			refuse(d, 1)
			d.tracker.Lose(inCrowd(1, true).UID, d.now)
		}, []decide.VolumeID{"disk-9"}},
		"gone before it was refused, and another one answers for it": {func(d *desk) {
			d.see(inCrowd(1, true))
			s := d.startsOf("disk-1", "publish va-a-disk-1 id-a")
			d.tracker.Lose(s.UID, d.now)
			d.ends(s, failed(codes.ResourceExhausted))
			d.see(inCrowd(1, true, named("next")))
		}, []decide.VolumeID{"disk-9"}},
		"published since": {func(d *desk) {
			refuse(d, 1)
			d.pass(time.Second)
			d.pushedBack(1, true, codes.OK)
		}, []decide.VolumeID{"disk-9"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := full(t)
			c.play(d)
			got := room(d)
			slices.Sort(got)
			slices.Sort(c.want)
			if got = slices.Compact(got); !slices.Equal(got, c.want) {
				t.Errorf("there is something new about %q, want %q", got, c.want)
			}
		})
	}
	d := full(t)
	d.see(attached("a", of("disk-8")))
	refuse(d, 1)
	refuse(d, 2)
	room(d)
	d.startsOf("disk-1", "publish va-a-disk-1 id-a")
	d.see(attached("a", of("disk-8"), deleting))
	got := d.ends(d.startsOf("disk-8", "unpublish va-a-disk-8 id-a"), ok)
	if !slices.Contains(got, "disk-2") || slices.Contains(got, "disk-1") {
		t.Errorf("there is room for a second one, and something new about %q", got)
	}
}

func TestFailureTouchesItsVolume(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a", deleting))
	got := d.does("unpublish va-a id-a", failed(codes.Internal))
	if !slices.Equal(got, []decide.VolumeID{handle}) {
		t.Errorf("there is something new about %q, want the volume", got)
	}
	if got := d.tracker.Done(decide.Step{Do: decide.Publish, UID: "nobody"}, ok, d.now); got != nil {
		t.Errorf("the end of a step of nobody says something new about %q", got)
	}
	d.tracker.Start(decide.Step{Do: decide.Publish, UID: "nobody"}, d.now)
}

// An eased attachment waits no longer than before; after eight times it has its own trouble.
func TestEased(t *testing.T) {
	d := crowded(t, 3, codes.Unavailable, false)
	for n := range 12 { // two of the three have their turn with each
		d.see(inCrowd(100+n, false))
		for _, id := range d.pushedBack(100+n, false, codes.OK)[1:] {
			i, _ := strconv.Atoi(strings.TrimPrefix(string(id), "disk-"))
			d.pushedBack(i, false, codes.Unavailable)
		}
		want := []time.Duration{time.Second, time.Second, time.Second}
		switch n {
		case 10:
			want[0] = 2 * time.Second
		case 11:
			want = []time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second}
		}
		for i := range want {
			if steps, wake := d.tracker.Next(disk(i), d.now); wake.Sub(d.now) > want[i] || n > 9 && wake.Sub(d.now) != want[i] {
				t.Fatalf("after %d successes disk %d waits for %s, want %s: %v", n+1, i, wake.Sub(d.now), want[i], steps)
			}
		}
	}
}

func TestEasedOnTheOtherWay(t *testing.T) {
	d := crowded(t, 3, codes.Unavailable, false)
	d.see(inCrowd(9, false))
	d.pushedBack(9, false, codes.OK)
	d.see(attached("z", of(disk(0)), func(a *decide.Attachment) { a.Created = epoch.Add(-time.Second) }))
	d.ends(d.startsOf(disk(0), "unpublish va-n0-disk-0 id-n0"), failed(codes.Unavailable))
	if _, wake := d.tracker.Next(disk(0), d.now); !wake.Equal(d.now.Add(time.Second)) {
		t.Errorf("it is tried again at %s, and it is %s, want a second later", wake, d.now)
	}
}

func TestUnpublishesAreOfACrowd(t *testing.T) {
	d := newDesk(t)
	for i := range 4 {
		d.see(inCrowd(i, false, deleting))
		a := inCrowd(i, false)
		d.ends(d.startsOf(disk(i), "unpublish "+a.Name+" "+a.NodeID), failed(codes.Unavailable))
		d.pass(time.Second)
	}
	if !d.tracker.Crowded() {
		t.Error("four unpublishes that were pushed back are no crowd")
	}
	d.pass(time.Minute)
	a := inCrowd(3, false)
	got := d.ends(d.startsOf(disk(3), "unpublish "+a.Name+" "+a.NodeID), ok)
	if want := []decide.VolumeID{disk(3), disk(0), disk(1)}; !slices.Equal(got, want) {
		t.Errorf("there is something new about %q, want %q", got, want)
	}
}

// A gone attachment has no turn if another answers for it.
func TestTheForgottenHaveNoTurn(t *testing.T) {
	d := crowded(t, 3, codes.Unavailable, false)
	d.pass(time.Minute)
	first := inCrowd(0, false)
	s := d.startsOf(disk(0), "publish "+first.Name+" "+first.NodeID)
	d.tracker.Lose(first.UID, d.now)
	d.see(stamped(first.Node, of(disk(0)), named("next")))
	d.ends(s, failed(codes.Unavailable))
	if d.tracker.Knows(first.UID) {
		t.Fatal("the attachment that is gone is still in the tracker")
	}
	second := inCrowd(1, false)
	got := d.ends(d.startsOf(disk(1), "publish "+second.Name+" "+second.NodeID), ok)
	if want := []decide.VolumeID{disk(1), disk(2)}; !slices.Equal(got, want) {
		t.Errorf("there is something new about %q, want %q", got, want)
	}
}

func TestRoomIsNotForWhoGivesWay(t *testing.T) {
	young := func(a *decide.Attachment) { a.Created = epoch.Add(time.Second) }
	d := newDesk(t)
	d.see(stamped("a", young))
	d.does("publish va-a id-a", failed(codes.ResourceExhausted))
	d.pass(time.Millisecond)
	d.see(inCrowd(7, true))
	d.pushedBack(7, true, codes.ResourceExhausted)
	d.see(attached("b"))
	got := d.does("unpublish va-a id-a", ok)
	if want := []decide.VolumeID{handle, disk(7)}; !slices.Equal(got, want) {
		t.Errorf("there is something new about %q, want %q", got, want)
	}
}

func TestPushedBackAlone(t *testing.T) {
	d := newDesk(t)
	d.see(stamped("a"))
	for _, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 64} {
		d.does("publish va-a id-a", failed(codes.Unavailable))
		d.wakes(wait * time.Second)
		d.pass(wait * time.Second)
	}
}

func TestEasedAndRefused(t *testing.T) {
	d := crowded(t, 3, codes.Unavailable, false)
	d.see(inCrowd(9, false))
	d.pushedBack(9, false, codes.OK)
	d.pushedBack(0, false, codes.Internal)
	if _, wake := d.tracker.Next(disk(0), d.now); !wake.Equal(d.now.Add(2 * time.Second)) {
		t.Errorf("it is tried again at %s, and it is %s, want two seconds later", wake, d.now)
	}
}

func TestNotEasedBySuccess(t *testing.T) {
	d := newDesk(t)
	d.see(attached("a"))
	d.see(attached("a", deleting))
	d.does("unpublish va-a id-a", failed(codes.Unavailable))
	d.wakes(time.Second)
	d.pass(time.Second)
	d.does("unpublish va-a id-a", failed(codes.Unavailable))
	d.wakes(2 * time.Second)
}

func TestDeletedKeepsItsTurn(t *testing.T) {
	d := newDesk(t)
	for i := range 4 {
		a := inCrowd(i, false, deleting)
		d.see(a)
		d.ends(d.startsOf(disk(i), "unpublish "+a.Name+" "+a.NodeID), failed(codes.Unavailable))
		d.pass(time.Second)
	}
	d.see(inCrowd(0, false, deleting))
	a := inCrowd(9, false)
	d.see(a)
	got := d.ends(d.startsOf(disk(9), "publish "+a.Name+" "+a.NodeID), ok)
	if want := []decide.VolumeID{disk(9), disk(0), disk(1)}; !slices.Equal(got, want) {
		t.Errorf("there is something new about %q, want %q", got, want)
	}
}
