// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

// FuzzEvents makes an event sequence of bytes and compares the ledger with its twin at the end.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 6, 0, 0, 5, 0, 0, 0, 0, 1})
	f.Add([]byte{7, 3, 0, 0, 1, 6, 3, 0, 0, 1, 1, 10, 0, 0, 0, 2, 1, 1, 13, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &bytes{data}
		l, w, s := New(), newTwin(), newStream(b)
		for now := start; b.more(); now = now.Add(time.Second) {
			e := s.event()
			l.Apply(now, e)
			w.apply(now, e)
		}
		if want, got := w.describe(), describeSnapshot(l.Snapshot()); want != got {
			t.Error(lineDifference(want, got))
		}
	})
}

// FuzzNames takes in names of any shape: nothing panics, known names are found again, and versions are
// ordered.
func FuzzNames(f *testing.F) {
	f.Add("disk.example.com", "vol-1", "worker-1", "17", "9")
	f.Add("", "\x00claim/", "", "", "0")
	f.Add("kubernetes.io/fc", "a^b", "n", "99999999999999999999", "100000000000000000000")
	f.Fuzz(func(t *testing.T, driver, handle, node, a, b string) {
		v, l := VolumeID{driver, handle}, New()
		l.Apply(start, PersistentVolume{Name: handle, Version: a, Volume: v})
		l.Apply(start, Attachment{Name: AttachmentName(v, NodeName(node)), UID: a, Version: a, Driver: driver, Node: NodeName(node), PersistentVolume: handle})
		l.Apply(start, NodeState{Name: NodeName(node), Version: b, InUse: []VolumeID{v, v}, Reported: []VolumeID{v}})
		l.Apply(start, PodGone{handle})
		l.Apply(start, TicketGone{ID: TicketID{node, handle}})
		if p := l.Snapshot().Volume(v).OnNode(NodeName(node)); !v.IsZero() && node != "" && (p == nil || len(p.Attachments()) != 1 || !p.InUse) {
			t.Errorf("%q is not where it was put: %+v", v, p)
		}
		if isNumber(a) && isNumber(b) && Newer(a, b) && Newer(b, a) {
			t.Errorf("both of %s and %s are newer", a, b)
		}
		_, _ = v.String(), v.NoAttach()
	})
}
