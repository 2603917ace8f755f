// SPDX-License-Identifier: Apache-2.0

package ledger

import "testing"

// The hold's fences outlive a deletion by others, in any order of events.
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

// The hold's place outlives the deletion if nothing else shows it. Without a PersistentVolume nothing is
// kept.
func TestWhatADeletedHoldStillSays(t *testing.T) {
	disk, lun := VolumeID{"disk", "h"}, VolumeID{"kubernetes.io/iscsi", "h"}
	for name, test := range map[string]struct {
		volume      VolumeID
		hold        Hold
		kept, place bool // the hold; the volume at its node
	}{
		"it was left there":        {disk, Hold{Node: "n", Stays: true}, true, true},
		"it needs no attachment":   {lun, Hold{Node: "n"}, true, true},
		"it was taken by force":    {disk, Hold{Node: "n", Fences: []Fence{{Node: "m", BootID: "b", InUse: true}}}, true, false},
		"it was granted to a node": {disk, Hold{Node: "n"}, false, false},
		"it is nowhere":            {lun, Hold{}, false, false},
	} {
		for _, named := range []bool{true, false} {
			l := New()
			if named {
				l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: test.volume})
			}
			hold := test.hold
			hold.Version = "1"
			l.Apply(start, HoldSeen{test.volume, hold})
			if got := atNode(l, test.volume, "n") != nil; got != test.place {
				t.Errorf("%s: its volume is there: %t", name, got)
			}
			l.Apply(start, HoldGone{Volume: test.volume})
			v := l.Snapshot().Volume(test.volume)
			if got := v != nil && v.Hold != nil; got != (test.kept && named) {
				t.Errorf("%s (a PersistentVolume names it: %t): the hold is kept: %t", name, named, got)
			}
			if got := v.OnNode("n") != nil; got != (test.place && named) {
				t.Errorf("%s (a PersistentVolume names it: %t): its volume is still there: %t", name, named, got)
			}
			if !named && v != nil {
				t.Errorf("%s: the volume is still known", name)
			}
		}
	}
}

func TestHeldWithoutAttachment(t *testing.T) {
	lun := VolumeID{"kubernetes.io/iscsi", "h"}
	l := New()
	for i, at := range []NodeName{"n", "m", "", "m"} {
		l.Apply(start, HoldSeen{lun, Hold{Version: string(rune('1' + i)), Node: at}})
		for _, n := range []NodeName{"n", "m"} {
			if p := atNode(l, lun, n); (p != nil) != (n == at) || p != nil && !p.Held {
				t.Errorf("its hold says %q, and it is at %s: %t", at, n, p != nil)
			}
		}
	}
}
