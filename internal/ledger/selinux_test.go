// SPDX-License-Identifier: Apache-2.0

package ledger

import "testing"

// only if no node can make them equal
func TestSELinuxConflicts(t *testing.T) {
	c1, c2 := SELinuxLabel("", "s0:c1"), SELinuxLabel("", "s0:c2")
	u1, w1 := SELinuxLabel("u", "s0:c1"), SELinuxLabel("w", "s0:c1")
	for _, test := range []struct {
		a, b SELinux
		want bool
	}{
		{SELinuxNone, SELinuxNone, false}, {c1, c1, false}, {u1, u1, false},
		{c1, c2, true}, {c1, SELinuxNone, true}, {u1, SELinuxNone, true}, {u1, c2, true}, {u1, SELinuxLabel("u", "s0:c2"), true},
		{u1, w1, true},
		{u1, c1, false}, // c1 may have u of its node
		{SELinuxLabel("", "s0:c1,c2"), SELinuxLabel("", "s0:c2,c1"), true}, // the kubelet compares text
		{SELinuxUnknown, c1, false}, {SELinuxUnknown, SELinuxNone, false}, {SELinuxUnknown, SELinuxUnknown, false},
	} {
		if test.a.Conflicts(test.b) != test.want || test.b.Conflicts(test.a) != test.want {
			t.Errorf("%q and %q: %v and %v, want %v", test.a, test.b, test.a.Conflicts(test.b), test.b.Conflicts(test.a), test.want)
		}
	}
}

func TestSELinuxParts(t *testing.T) {
	for label, want := range map[SELinux][2]string{
		SELinuxNone: {}, SELinuxUnknown: {}, SELinuxLabel("", "s0:c1,c2"): {"", "s0:c1,c2"}, SELinuxLabel("u", "s0"): {"u", "s0"},
	} {
		if user, level := label.Parts(); [2]string{user, level} != want {
			t.Errorf("%q is of %q and %q, want %q", label, user, level, want)
		}
	}
}

func TestSnapshotSELinuxMount(t *testing.T) {
	l := New()
	says := func() bool { return l.Snapshot().SELinuxMount("disk") }
	if says() {
		t.Error("a driver without a CSIDriver mounts by label")
	}
	l.Apply(start, Driver{Name: "disk", Version: "1", AttachRequired: true})
	if says() {
		t.Error("a driver that does not say so mounts by label")
	}
	l.Apply(start, Driver{Name: "disk", Version: "2", AttachRequired: true, SELinuxMount: true})
	if !says() {
		t.Error("a driver that says so does not mount by label")
	}
}
