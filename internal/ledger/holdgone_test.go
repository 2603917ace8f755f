// SPDX-License-Identifier: Apache-2.0

package ledger

import "testing"

// What a hold says of where its volume may be mounted outlives it where somebody else has
// deleted it, and not where this process has, whatever the watch shows first; nor does what
// the watch shows late bring it back for good.
func TestHoldThatIsDeleted(t *testing.T) {
	v := VolumeID{"disk", "h"}
	pv := PersistentVolume{Name: "pv", Version: "1", Volume: v}
	fenced := HoldSeen{v, Hold{Version: "2", Transitions: 1, Fences: []Fence{{Node: "n", BootID: "b", InUse: true}}}}
	later, silent := fenced, HoldSeen{v, Hold{Version: "2", Transitions: 1}}
	later.Hold.Version = "5"
	gone, dropped := HoldGone{Volume: v}, HoldDropped{v, "2"}
	for name, test := range map[string]struct {
		events []Event
		kept   bool
	}{
		"by somebody":                         {[]Event{pv, fenced, gone}, true},
		"told twice":                          {[]Event{pv, fenced, gone, gone}, true},
		"by somebody, of no PersistentVolume": {[]Event{fenced, gone}, false},
		"it said nothing":                     {[]Event{pv, silent, gone}, false},
		"by this process":                     {[]Event{pv, fenced, dropped, gone}, false},
		"by this process, seen before":        {[]Event{pv, fenced, gone, dropped}, false},
		"by this process, and seen late":      {[]Event{pv, fenced, dropped, fenced, gone}, false},
		"made again, and then by somebody":    {[]Event{pv, fenced, dropped, gone, later, gone}, true},
		"of which there is none":              {[]Event{pv, dropped}, false},
	} {
		l := New()
		for _, e := range test.events {
			l.Apply(start, e)
		}
		if h := l.Snapshot().Volume(v); (h != nil && h.Hold != nil) != test.kept {
			t.Errorf("%s: kept: %t", name, !test.kept)
		} else if test.kept && (h.Hold.Version != "" || len(h.Hold.Fences) != 1) {
			t.Errorf("%s: it is kept as %+v", name, *h.Hold)
		}
	}
}
