// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A claim without a driver yet, and a volume that a kubelet attaches itself, take none.
func TestWhatTakesASlot(t *testing.T) {
	w := evaluation{snapshot: plannerOf(t, Arbiter{}, "", ledger.Hold{}, ledger.Driver{Name: "n", Version: "1"}).snapshot}
	for name, test := range map[string]struct {
		v                          ledger.VolumeID
		slot, attaches, attachable bool
	}{
		"a volume":                   {disk, true, true, true},
		"of an unbound claim":        {ledger.UnboundClaim("d", "u"), true, true, true},
		"of no driver yet":           {ledger.VolumeID{}, false, false, true},
		"of iSCSI":                   {ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}, false, false, true},
		"of one that attaches none":  {ledger.VolumeID{Driver: "n", Handle: "h"}, true, false, false},
		"of a driver nobody has met": {ledger.VolumeID{Driver: "x", Handle: "h"}, true, true, true},
	} {
		if got := (Need{Volume: test.v}).TakesSlot(); got != test.slot {
			t.Errorf("%s: takes a slot: %t", name, got)
		}
		if got := (Need{Volume: test.v}).Attaches(w.snapshot); got != test.attaches {
			t.Errorf("%s: attaches: %t", name, got)
		}
		r := Request{Needs: []Need{{Volume: ledger.VolumeID{Driver: "n", Handle: "other"}}, {Volume: test.v}}}
		if got := r.Attachable(w.snapshot); got != test.attachable {
			t.Errorf("%s: may need an attachment: %t", name, got)
		}
		w.request.Needs = []Need{{Volume: test.v}, {Volume: test.v}}
		if list := slices.Collect(w.drivers()); len(list) > 1 || (len(list) == 1) != test.slot {
			t.Errorf("%s: slots of %q are needed", name, list)
		}
	}
	if (Request{}).Attachable(w.snapshot) {
		t.Error("a request for nothing may need an attachment")
	}
}

func TestWhoConfirmsASlot(t *testing.T) {
	taken := ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "5", Fences: []ledger.Fence{
		{Node: "well", NodeUID: "w", SystemUUID: "m", BootID: "b", Attachment: "awell", Rule: AfterPodGone, InUse: true},
	}}}
	gone := ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "well")}
	lost := []ledger.Event{nodeAs("well", ofMachine("m", "b"), using, reporting), madeAt("well"), ledger.NodeGone{Name: "well"}, taken, gone}
	registers := func(machine, boot string) []ledger.Event {
		return []ledger.Event{
			again(ofMachine(machine, boot), func(n *ledger.NodeState) { n.Version, n.Ready, n.Reporting = "7", ledger.ReadyUnknown, false }),
			again(ofMachine(machine, boot), func(n *ledger.NodeState) { n.Version = "8" }),
		}
	}
	for name, test := range map[string]struct {
		facts          []ledger.Event
		fresh, missing int32
	}{
		"nobody is there":                         {nil, 1, 1},
		"its own grant":                           {[]ledger.Event{asksAt("r", ledger.TypeManual, "well", grantedNow)}, 1, 0},
		"another's grant":                         {[]ledger.Event{asksAt("o", ledger.TypeManual, "well", grantedNow)}, 0, 0},
		"its own, and another's":                  {[]ledger.Event{asksAt("r", ledger.TypeManual, "well", grantedNow), asksAt("o", ledger.TypeManual, "well", grantedNow)}, 0, 0},
		"another one asks":                        {[]ledger.Event{asksAt("o", ledger.TypeManual, "well")}, 1, 0},
		"a pod":                                   {[]ledger.Event{dataAt("q", "well", ledger.PodLive)}, 0, 0},
		"a pod that leaves":                       {[]ledger.Event{dataAt("q", "well", ledger.PodTerminating)}, 1, 0},
		"it is attached":                          {[]ledger.Event{madeAt("well")}, 0, 0},
		"it is at another node":                   {[]ledger.Event{madeAt("dead")}, 1, 1},
		"the machine says that it is in use":      {[]ledger.Event{nodeAs("well", ofMachine("m", "b"), using)}, 1, 0},
		"it was detached while its Node was gone": {append(slices.Clone(lost), registers("m", "b")...), 1, 1},
		"and another machine has the name since":  {append(slices.Clone(lost), registers("z", "c")...), 1, 1},
		"it is attached to the machine before":    {[]ledger.Event{nodeAs("well", ofMachine("m", "b"), using), madeAt("well"), again(ofMachine("z", "c"))}, 0, 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		w := evaluation{snapshot: p.snapshot, request: needing("d/h"), node: "well", now: auditTime}
		if fresh, missing := w.fresh("d"); fresh != test.fresh || missing != test.missing {
			t.Errorf("%s: %d, and %d missing", name, fresh, missing)
		}
	}
	q := slotted(t)
	q.give(needing("d/1"))
	for handle, want := range map[string]int32{"d/1": 0, "d/2": 1} {
		w := evaluation{snapshot: q.snapshot, request: needing(handle), node: "well", now: auditTime, queue: q}
		if fresh, missing := w.fresh("d"); fresh != want || missing != want {
			t.Errorf("of %s, where d/1 was given a slot: %d, and %d missing", handle, fresh, missing)
		}
	}
}

func TestFullByAPolicy(t *testing.T) {
	few := func(change func(*ledger.Policy)) ledger.Event {
		p := ledger.Policy{Name: "few", Version: "1", Driver: "d"}
		change(&p)
		return p
	}
	slots := func(limit int32) ledger.Event {
		return ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: limit}}}
	}
	noDriver := ledger.NodeDrivers{Node: "well", Version: "2"}
	needed := ledger.Driver{Name: "d", Version: "2", AttachRequired: true, NeedsNode: true}
	most := func(n int32) func(*ledger.Policy) { return func(p *ledger.Policy) { p.MaxSlots = &n } }
	for name, test := range map[string]struct {
		facts  []ledger.Event
		code   ledger.Code // empty: not full
		policy string
	}{
		"there is room":                  {[]ledger.Event{slots(1)}, "", ""},
		"the node has none":              {[]ledger.Event{slots(0)}, NoFreeSlot, ""},
		"the node has none, by any":      {[]ledger.Event{slots(0), few(most(9))}, NoFreeSlot, ""},
		"a policy has none":              {[]ledger.Event{slots(4), few(most(0))}, NoFreeSlot, "few"},
		"a policy keeps one free":        {[]ledger.Event{slots(1), few(func(p *ledger.Policy) { p.Headroom = 1 })}, NoFreeSlot, "few"},
		"the node states no limit":       {[]ledger.Event{slots(ledger.NoLimit)}, "", ""},
		"it states none, a policy does":  {[]ledger.Event{slots(ledger.NoLimit), few(most(0))}, NoFreeSlot, "few"},
		"the driver is not there":        {[]ledger.Event{noDriver}, "", ""},
		"not there, and a policy limits": {[]ledger.Event{noDriver, few(most(0))}, NoFreeSlot, "few"},
		"not there, and has to be":       {[]ledger.Event{noDriver, needed}, DriverNotRegistered, ""},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		w := evaluation{snapshot: p.snapshot, request: needing("d/1"), node: "well", now: auditTime}
		w.request.Type = ""
		r, full := w.full(p.snapshot.Node("well"), "d")
		if full != (test.code != "") || full && (r.Code != test.code || r.Policy != test.policy || r.Driver != "d" || r.Node != "well") {
			t.Errorf("%s: full: %t, %+v", name, full, r)
		}
		if full && r.Code == NoFreeSlot && (r.Used != 0 || r.Limit != 0 || r.Needed != 1) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
