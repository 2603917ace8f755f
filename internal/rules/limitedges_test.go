// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestFreshVolumes(t *testing.T) {
	there := ledger.Pod{UID: "q", Version: "1", Namespace: "shop", Name: "q", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Inline: ledger.VolumeID{Driver: "d", Handle: "used"}}}}
	for name, test := range map[string]struct {
		needs              []string
		fresh, missing     int32 // for a scheduler
		unreserved, absent int32 // for the controller
	}{
		"nothing":                   {nil, 0, 0, 0, 0},
		"new ones":                  {[]string{"d/1", "d/2"}, 2, 2, 2, 2},
		"of other drivers":          {[]string{"e/1", "n/1"}, 0, 0, 0, 0},
		"one of it, and of another": {[]string{"e/1", "d/1", "e/2"}, 1, 1, 1, 1},
		"one that is attached":      {[]string{"d/there"}, 0, 0, 0, 0},
		"one that a pod has":        {[]string{"d/used"}, 0, 0, 0, 0},
		"one that is asked for":     {[]string{"d/asked"}, 1, 0, 1, 1},
	} {
		q := slotted(t, ledger.Driver{Name: "n", Version: "1"}, there)
		w := evaluation{snapshot: q.snapshot, request: needing(test.needs...), node: "well", now: auditTime}
		if fresh, missing := w.fresh("d"); fresh != test.fresh || missing != test.missing {
			t.Errorf("%s, to a scheduler: %d, and %d missing", name, fresh, missing)
		}
		w.queue = q
		if fresh, missing := w.fresh("d"); fresh != test.unreserved || missing != test.absent {
			t.Errorf("%s, to the controller: %d, and %d missing", name, fresh, missing)
		}
	}
}

func TestFullToldByAQueue(t *testing.T) {
	few := func(limit int32) ledger.Event {
		return ledger.NodeDrivers{Node: "well", Version: "3", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: limit}}}
	}
	for name, test := range map[string]struct {
		limit int32
		needs []string
		want  Reason // zero: not full
	}{
		"there is room":            {2, []string{"d/1"}, Reason{}},
		"there is none":            {1, []string{"d/1"}, Reason{Code: NoFreeSlot, Used: 1, Limit: 1, Needed: 1}},
		"there is room for one":    {2, []string{"d/1", "d/2"}, Reason{Code: NoFreeSlot, Used: 1, Limit: 2, Needed: 2}},
		"and one is there":         {2, []string{"d/1", "d/there", "d/2"}, Reason{Code: NoFreeSlot, Used: 1, Limit: 2, Needed: 2}},
		"there are none at all":    {0, []string{"d/1"}, Reason{Code: NoFreeSlot, Used: 1, Limit: 0, Needed: 1}},
		"there, and needs no more": {0, []string{"d/there"}, Reason{}},
	} {
		q := slotted(t, few(test.limit))
		w := evaluation{snapshot: q.snapshot, request: needing(test.needs...), node: "well", now: auditTime, queue: q}
		if test.want != (Reason{}) {
			test.want.Driver, test.want.Node = "d", "well"
		}
		if got, full := w.full(q.snapshot.Node("well"), "d"); full != (test.want != Reason{}) || full && got != test.want {
			t.Errorf("%s: full %t, %+v\nwant %+v", name, full, got, test.want)
		}
	}
}

// A dry run frees a removed volume's slot once, unless others or the request need it.
func TestSlotsThatADryRunFrees(t *testing.T) {
	user := func(uid string, handles ...string) ledger.Event {
		p := ledger.Pod{UID: uid, Version: "1", Namespace: "shop", Name: uid, Node: "well"}
		for _, h := range handles {
			p.Volumes = append(p.Volumes, ledger.PodVolume{Name: h, Inline: ledger.VolumeID{Driver: h[:1], Handle: h[2:]}, Access: ledger.AccessMany})
		}
		return p
	}
	reserved := ledger.Pod{UID: "r", Version: "1", Namespace: "shop", Name: "reserves", Node: "well", Volumes: []ledger.PodVolume{{Name: "a", Inline: ledger.VolumeID{Driver: "d", Handle: "reserved"}}}}
	for name, test := range map[string]struct {
		removed []string
		d, e    int32
	}{
		"nobody":                 {nil, 0, 0},
		"the only user":          {[]string{"alone"}, 1, 0},
		"with two volumes":       {[]string{"both"}, 1, 1},
		"one of two users":       {[]string{"first"}, 0, 0},
		"both users":             {[]string{"first", "second"}, 1, 0},
		"who uses what is asked": {[]string{"same"}, 0, 0},
		"one that is reserved":   {[]string{"r"}, 1, 0},
		"one that nobody knows":  {[]string{"unknown"}, 0, 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, user("alone", "d/alone"), user("both", "d/both", "e/both"), user("first", "d/shared"), user("second", "d/shared"),
			user("same", "d/asked"), reserved)
		d := &ledger.Delta{}
		for _, uid := range test.removed {
			d.Remove(uid)
		}
		w := evaluation{snapshot: p.snapshot.With(d), request: needing("d/asked"), node: "well", now: auditTime}
		got := map[string]int32{}
		for _, driver := range []string{"d", "e"} {
			got[driver] = -w.tryout(p.snapshot.Node("well"), driver)
		}
		if want := map[string]int32{"d": test.d, "e": test.e}; !maps.Equal(got, want) {
			t.Errorf("%s: %v slots come free, want %v", name, got, want)
		}
	}
}

func TestPoliced(t *testing.T) {
	two := int32(2)
	policy := ledger.Policy{Name: "few", Version: "1", Driver: "d", MaxSlots: &two}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, policy)
	for _, test := range []struct {
		needs []string
		want  Reason // zero: there is room
	}{
		{nil, Reason{}},
		{[]string{"d/1"}, Reason{}},
		{[]string{"d/1", "d/2"}, Reason{}},
		{[]string{"d/1", "d/2", "e/1", "e/2", "e/3"}, Reason{}},
		{[]string{"d/1", "d/2", "d/3"}, Reason{Code: NoFreeSlot, Driver: "d", Limit: 2, Needed: 3, Policy: "few"}},
	} {
		got := evaluation{snapshot: p.snapshot, request: needing(test.needs...), now: auditTime}.policed()
		if (len(got) > 0) != (test.want != Reason{}) || len(got) > 0 && (len(got) > 1 || got[0] != test.want) {
			t.Errorf("%v: %+v", test.needs, got)
		}
	}
}
