// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestLeaving(t *testing.T) {
	start := time.Unix(1000, 0)
	volume := ledger.VolumeID{Driver: "d", Handle: "h"}
	l := ledger.New()
	since := func() (time.Duration, bool) {
		s := l.Snapshot()
		at, leaving := s.Leaving(s.Volume(volume).OnNode("n1"))
		if !leaving {
			return 0, false
		}
		return at.Sub(start), true
	}
	va := ledger.Attachment{Name: ledger.AttachmentName(volume, "n1"), UID: "first", Version: "1", Driver: "d", Node: "n1", Inline: volume, Attached: true, Ours: true}
	deleted := func(uid, version string, e ledger.CallError) ledger.Attachment {
		a := va
		a.UID, a.Version, a.Deleting, a.DeletedAt, a.DetachError = uid, version, true, 77, e
		return a
	}
	other := va
	other.UID, other.Version = "second", "6"
	for _, step := range []struct {
		after   time.Duration
		event   ledger.Event
		leaving bool
		want    time.Duration
	}{
		{0, va, false, 0},
		{time.Second, deleted("first", "2", ledger.CallError{}), true, time.Second},
		{2 * time.Second, deleted("first", "3", ledger.CallError{Message: "no"}), true, time.Second},
		{3 * time.Second, deleted("first", "4", ledger.CallError{}), true, time.Second},
		{4 * time.Second, ledger.AttachmentGone{Name: va.Name}, false, 0},
		{5 * time.Second, other, false, 0},
		{6 * time.Second, deleted("second", "7", ledger.CallError{}), true, 6 * time.Second},
		// The new attachment is seen before the former's end.
		{7 * time.Second, deleted("third", "8", ledger.CallError{}), true, 7 * time.Second},
	} {
		l.Apply(start.Add(step.after), step.event)
		if got, leaving := since(); leaving != step.leaving || got != step.want {
			t.Errorf("after %+v: since %s, leaving %t; want %s, %t", step.event, got, leaving, step.want, step.leaving)
		}
	}
	if a := l.Snapshot().Attachment(va.Name); a == nil || a.DeletedAt != 77 {
		t.Errorf("the attachment is %+v", a)
	}
}
