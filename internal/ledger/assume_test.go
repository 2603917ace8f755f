// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

// The oldest policy counts, then the first by name.
func TestWhichPolicyCounts(t *testing.T) {
	l, v := New(), VolumeID{"d", "h"}
	l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: v})
	policy := func(name, version, class string, created int64) Policy {
		return Policy{Name: name, Version: version, Driver: "d", Class: class, Created: created}
	}
	apply := func(e Event) (string, bool) {
		touched := l.Apply(start, e)
		counts := ""
		if p := l.Snapshot().Policy("d", ""); p != nil {
			counts = p.Name
		}
		return counts, len(touched.Volumes) > 0
	}
	for i, test := range []struct {
		event   Event
		counts  string
		touches bool
	}{
		{policy("b", "1", "", 20), "b", true},
		{policy("c", "2", "", 20), "b", true},
		{policy("a", "3", "", 20), "a", true},
		{policy("a", "3", "", 10), "a", false}, // known
		{policy("z", "4", "", 10), "z", true},
		{policy("z", "5", "fast", 10), "a", true}, // of another class now
		{PolicyGone{"z"}, "a", true},
		{PolicyGone{"z"}, "a", false},
		{PolicyGone{"a"}, "b", true},
		{PolicyGone{"b"}, "c", true},
		{PolicyGone{"c"}, "", true},
	} {
		if counts, touches := apply(test.event); counts != test.counts || touches != test.touches {
			t.Errorf("%d, %+v: %q counts, and volumes are touched: %t; want %q, %t", i, test.event, counts, touches, test.counts, test.touches)
		}
	}
	if l.Snapshot().Policy("d", "fast") != nil {
		t.Error("a policy that is gone counts")
	}
}

func TestDriverTouchesItsVolumes(t *testing.T) {
	l := New()
	l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: VolumeID{"d", "h"}})
	l.Apply(start, PersistentVolume{Name: "pv2", Version: "1", Volume: VolumeID{"e", "h"}})
	driver := func(version string, required bool) Driver {
		return Driver{Name: "d", Version: version, AttachRequired: required}
	}
	for i, test := range []struct {
		event    Event
		touches  bool
		required bool
	}{
		{driver("1", true), false, true}, // unchanged from the assumption
		{driver("2", true), false, true},
		{driver("3", false), true, false},
		{driver("4", false), false, false},
		{driver("3", true), false, false}, // older
		{DriverGone{"d"}, true, true},
		{driver("5", false), true, false},
		{driver("6", true), true, true},
		{DriverGone{"d"}, false, true},
		{DriverGone{"d"}, false, true},
	} {
		touched := l.Apply(start, test.event)
		if want := map[bool]int{true: 1, false: 0}[test.touches]; len(touched.Volumes) != want || want == 1 && touched.Volumes[0] != (VolumeID{"d", "h"}) {
			t.Errorf("%d, %+v touches %v", i, test.event, touched.Volumes)
		}
		if got := l.Snapshot().AttachRequired("d"); got != test.required {
			t.Errorf("%d: attachments are needed: %t", i, got)
		}
	}
}

// A CSIDriver or a node's registration.
func TestKnowsDriver(t *testing.T) {
	l := New()
	for i, test := range []struct {
		event Event
		want  bool
	}{
		{NodeState{Name: "n", Version: "1"}, false},
		{NodeDrivers{Node: "n", Version: "1", Drivers: []DriverOnNode{{Name: "d"}}}, true},
		{NodeDriversGone{"n"}, false},
		{Driver{Name: "d", Version: "1"}, true},
		{DriverGone{"d"}, false},
	} {
		l.Apply(start, test.event)
		if got := l.Snapshot().KnowsDriver("d"); got != test.want {
			t.Errorf("%d, %T: known: %t", i, test.event, got)
		}
	}
}

func TestDelta(t *testing.T) {
	var none *Delta
	if !none.Empty() || none.Clone() != nil {
		t.Error("no dry run changes something")
	}
	d := &Delta{}
	if d.Add("tried", "n1"); d.Empty() || d.Added["tried"] != "n1" {
		t.Errorf("tried: %+v", d)
	}
	c := d.Clone()
	if d.Remove("tried"); !d.Empty() || len(d.Removed) > 0 {
		t.Errorf("no longer tried: %+v", d)
	}
	if d.Remove("victim"); d.Empty() || !d.Removed["victim"] {
		t.Errorf("taken away: %+v", d)
	}
	if d.Add("victim", "n1"); !d.Empty() || len(d.Added) > 0 {
		t.Errorf("spared: %+v", d)
	}
	if c.Added["tried"] != "n1" || len(c.Removed) > 0 {
		t.Errorf("a copy has changed with it: %+v", c)
	}
	if granted := (&Delta{Granted: TicketID{"ns", "t"}}).Clone(); granted.Empty() || granted.Granted.Name != "t" {
		t.Errorf("granted: %+v", granted)
	}
}

func TestLeft(t *testing.T) {
	l, v := New(), VolumeID{"d", "h"}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for i, n := range []NodeName{"n1", "n2"} {
		l.Apply(at(i), Attachment{Name: AttachmentName(v, n), UID: string(n), Version: "1", Driver: "d", Node: n, Inline: v, Attached: true})
	}
	l.Apply(at(2), PersistentVolume{Name: "pv", Version: "1", Volume: v})
	if _, left := l.Snapshot().Volume(v).Left("n1"); left {
		t.Error("it has left before it did")
	}
	l.Apply(at(3), AttachmentGone{AttachmentName(v, "n1")})
	if when, left := l.Snapshot().Volume(v).Left("n1"); !left || !when.Equal(at(3)) {
		t.Errorf("left: %t at %v", left, when)
	}
	if _, left := l.Snapshot().Volume(v).Left("n2"); left {
		t.Error("it has left where it is")
	}
	l.Apply(at(4), AttachmentGone{AttachmentName(v, "n2")})
	if _, left := l.Snapshot().Volume(v).Left("n1"); left {
		t.Error("n1 is remembered, and n2 came after it")
	}
	if _, left := (*Volume)(nil).Left("n1"); left {
		t.Error("nothing has left")
	}
}

// The time counts from this process's first sight.
func TestLeaving(t *testing.T) {
	l, v := New(), VolumeID{"d", "h"}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	version := 0
	seen := func(seconds int, uid string, deleting bool) (int, bool) {
		version++
		l.Apply(at(seconds), Attachment{Name: AttachmentName(v, "n1"), UID: uid, Version: string(rune('0' + version)), Driver: "d", Node: "n1", Inline: v, Attached: true, Deleting: deleting})
		since, leaving := l.Snapshot().Leaving(l.Snapshot().Volume(v).OnNode("n1"))
		return int(since.Sub(start).Seconds()), leaving
	}
	if _, leaving := seen(1, "a", false); leaving {
		t.Error("it is not being deleted")
	}
	for i, test := range []struct {
		seconds int
		uid     string
		want    int
	}{{2, "a", 2}, {5, "a", 2}, {7, "b", 7}, {9, "b", 7}} {
		if since, leaving := seen(test.seconds, test.uid, true); !leaving || since != test.want {
			t.Errorf("%d: leaving: %t since %d, want %d", i, leaving, since, test.want)
		}
	}
	if _, leaving := l.Snapshot().Leaving(nil); leaving {
		t.Error("nothing is being deleted")
	}
}
