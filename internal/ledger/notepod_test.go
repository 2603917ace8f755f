// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

// Another VolumeAttachment of the name may take its place unseen.
func TestNotesListTheirPods(t *testing.T) {
	l, now := New(), time.Unix(1000, 0)
	disk := VolumeID{"disk", "h"}
	l.Apply(now, PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: disk, Access: AccessNode})
	a := Attachment{Name: AttachmentName(disk, "n"), UID: "u1", Version: "2", Driver: "disk", Node: "n", PersistentVolume: "pv", Note: Note{NodeUID: "n", Pod: "p1"}}
	l.Apply(now, a)
	a.UID, a.Version, a.Note.Pod = "u2", "3", "p2"
	l.Apply(now, a)
	if l.facts.listed.get("p1") != nil || l.facts.listed.get("p2") == nil {
		t.Errorf("listed for p1: %v, for p2: %v", l.facts.listed.get("p1"), l.facts.listed.get("p2"))
	}
	l.Apply(now, AttachmentGone{Name: a.Name})
	if l.facts.listed.get("p2") != nil {
		t.Error("listed for the pod of an attachment that is gone")
	}
}
