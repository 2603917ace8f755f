// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestForksDoNotShowInEachOther(t *testing.T) {
	now := time.Unix(1, 0)
	v := ledger.VolumeID{Driver: "d", Handle: "h"}
	a := ledger.New()
	a.Apply(now, ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: v, Access: ledger.AccessNode})
	a.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(v, "n1"), UID: "1", Version: "2", Driver: "d", Node: "n1", PersistentVolume: "pv"})
	b := a.Fork()
	a.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(v, "n1"), UID: "1", Version: "3", Driver: "d", Node: "n1", PersistentVolume: "pv", Attached: true})
	b.Apply(now, ledger.AttachmentGone{Name: ledger.AttachmentName(v, "n1")})
	b.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(v, "n2"), UID: "2", Version: "4", Driver: "d", Node: "n2", PersistentVolume: "pv"})

	if own := a.Snapshot().Volume(v).OnNode("n1").Own(); own == nil || !own.Attached {
		t.Errorf("the original has lost its attachment: %v", own)
	}
	if p := a.Snapshot().Volume(v).OnNode("n2"); p != nil {
		t.Errorf("the fork's attachment shows in the original: %v", p)
	}
	if p := b.Snapshot().Volume(v).OnNode("n1"); p != nil {
		t.Errorf("the original's attachment shows in the fork: %v", p)
	}
	if own := b.Snapshot().Volume(v).OnNode("n2").Own(); own == nil {
		t.Error("the fork has lost its attachment")
	}
}

func TestForksWaitForVolumesApart(t *testing.T) {
	now, v := time.Unix(1, 0), ledger.VolumeID{Driver: "d", Handle: "h"}
	va := ledger.Attachment{Name: ledger.AttachmentName(v, "n1"), UID: "1", Version: "2", Driver: "d", Node: "n1", PersistentVolume: "unseen"}
	theirs := ledger.Attachment{Name: "theirs", UID: "2", Version: "2", Driver: "d", Node: "n1", PersistentVolume: "unseen"}
	for _, event := range []ledger.Event{ledger.AttachmentGone{Name: va.Name}, theirs} {
		a := ledger.New()
		a.Apply(now, va)
		b := a.Fork()
		b.Apply(now, event)
		b.Apply(now, theirs)
		b.Apply(now, ledger.AttachmentGone{Name: va.Name})
		a.Apply(now, ledger.AttachmentGone{Name: "theirs"})
		a.Apply(now, ledger.HoldSeen{Volume: v, Hold: ledger.Hold{Version: "1", Node: "n1"}})
		if at := a.Snapshot().AttachmentVolume(va.Name); at != v {
			t.Errorf("after %T in the fork, it is of %q", event, at)
		}
	}
}
