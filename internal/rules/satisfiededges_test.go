// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestSatisfiedSaysOneThing(t *testing.T) {
	migrates := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	with := func(parameters string) func(*ledger.Ticket) {
		return func(k *ledger.Ticket) { k.Parameters = parameters }
	}
	other := asksAt("o", ledger.TypeBackup, "well", grantedNow, with("c=d"))
	reported := nodeAs("well", reporting)
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		facts  []ledger.Event
		want   []ledger.Code
	}{
		"it has it":                     {"well", []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow), madeAt("well"), reported}, nil},
		"it is not reported":            {"well", []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow), madeAt("well")}, []ledger.Code{NotReported}},
		"it is not granted":             {"well", []ledger.Event{asksAt("m", ledger.TypeManual, "well"), madeAt("well")}, []ledger.Code{NotGranted}},
		"it is held elsewhere":          {"dead", []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow), madeAt("dead")}, []ledger.Code{Detaching}},
		"attached for another":          {"well", []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow, with("a=b")), other, madeAt("well")}, []ledger.Code{IncompatibleParameters}},
		"attached, and mounted":         {"well", []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow, with("a=b")), madeAt("well"), nodeAs("well", using)}, []ledger.Code{InUse}},
		"attached for another, mounted": {"well", []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow, with("a=b")), other, madeAt("well"), nodeAs("well", using)}, []ledger.Code{IncompatibleParameters}},
		"a migration has brought it":    {"dead", []ledger.Event{migrates, asksAt("m", ledger.TypeLiveMigration, "well", grantedNow), madeAt("dead"), dataAt("q", "dead", ledger.PodLive), madeAt("well"), reported}, nil},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		v := Arbiter{}.Satisfied(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime)
		if got := codes(v.Reasons); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// An exclusive volume is missing only if its hold gives it to another node where it still is.
func TestHeldAway(t *testing.T) {
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		kind   ledger.TicketType
		facts  []ledger.Event
		want   bool
	}{
		"held elsewhere":         {"dead", ledger.TypeManual, []ledger.Event{madeAt("dead")}, true},
		"held here":              {"well", ledger.TypeManual, []ledger.Event{madeAt("well")}, false},
		"nothing is left there":  {"dead", ledger.TypeManual, []ledger.Event{alive}, false},
		"many share it":          {"dead", ledger.TypeManual, []ledger.Event{madeAt("dead"), sharedDisk}, false},
		"it needs no attachment": {"dead", ledger.TypeManual, []ledger.Event{dataAt("q", "dead", ledger.PodLive), noAttach}, false},
		"it follows a migration": {"dead", ledger.TypeLiveMigration, []ledger.Event{madeAt("dead")}, false},
		"no hold":                {"dead", ledger.TypeManual, []ledger.Event{madeAt("dead"), ledger.HoldGone{Volume: disk}, ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "dead")}}, false},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, ledger.Hold{}, append([]ledger.Event{alive, asksAt("m", test.kind, "well", grantedNow)}, test.facts...)...)
		got := Arbiter{}.heldAway(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), disk, auditTime)
		if len(got) > 0 != test.want || test.want && got[0].Node != "dead" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestFirstLiving(t *testing.T) {
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  string
	}{
		"nobody":          {[]ledger.Event{madeAt("well")}, ""},
		"one":             {[]ledger.Event{dataAt("q", "well", ledger.PodLive)}, "q"},
		"the first":       {[]ledger.Event{dataAt("a", "well", ledger.PodLive), dataAt("q", "well", ledger.PodLive)}, "a"},
		"the first, last": {[]ledger.Event{dataAt("q", "well", ledger.PodLive), dataAt("a", "well", ledger.PodLive)}, "a"},
		"not who leaves":  {[]ledger.Event{dataAt("a", "well", ledger.PodTerminating), dataAt("q", "well", ledger.PodLive)}, "q"},
		"nor who asks":    {[]ledger.Event{asksAt("a", ledger.TypeManual, "well"), dataAt("q", "well", ledger.PodLive)}, "q"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		if got := p.firstLiving(p.at("well")); got.Name != test.want {
			t.Errorf("%s: %q", name, got.Name)
		}
	}
	if got := (&planner{}).firstLiving(nil); !got.IsZero() {
		t.Errorf("where nothing is: %+v", got)
	}
}

// A yielding ticket goes after other tickets, before pods.
func TestAttachedOtherwise(t *testing.T) {
	with := func(parameters string) func(*ledger.Ticket) {
		return func(k *ledger.Ticket) { k.Parameters = parameters }
	}
	own := asksAt("m", ledger.TypeManual, "well", grantedNow, with("a=b"))
	ownYields := asksAt("m", ledger.TypeBackup, "well", grantedNow, with("a=b"))
	var many []ledger.Event
	for i := range fewUsers + 2 {
		many = append(many, asksAt(fmt.Sprintf("many-%02d", i), ledger.TypeBackup, "well", grantedNow, with("c=d")))
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  int
	}{
		"nobody else":              {[]ledger.Event{own}, 0},
		"one with the same":        {[]ledger.Event{own, asksAt("o", ledger.TypeBackup, "well", grantedNow, with("a=b"))}, 0},
		"one with others":          {[]ledger.Event{own, asksAt("o", ledger.TypeBackup, "well", grantedNow, with("c=d"))}, 1},
		"one that only asks":       {[]ledger.Event{own, asksAt("o", ledger.TypeBackup, "well", with("c=d"))}, 0},
		"a pod":                    {[]ledger.Event{own, dataAt("q", "well", ledger.PodLive)}, 1},
		"many":                     {append([]ledger.Event{own}, many...), fewUsers},
		"who yields, and a pod":    {[]ledger.Event{ownYields, dataAt("q", "well", ledger.PodLive)}, 0},
		"who yields, and another":  {[]ledger.Event{ownYields, asksAt("o", ledger.TypeBackup, "well", grantedNow, with("c=d"))}, 1},
		"who yields, and a manual": {[]ledger.Event{ownYields, asksAt("o", ledger.TypeManual, "well", grantedNow, with("c=d"))}, 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		k := p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})
		if got := (Arbiter{}).AttachedOtherwise(p.snapshot, TicketRequest(p.snapshot, k), "well").Reasons; len(got) != test.want {
			t.Errorf("%s: %+v", name, got)
		}
		if got := (Arbiter{}).AttachedOtherwise(p.snapshot, TicketRequest(p.snapshot, k), "third").Reasons; len(got) > 0 {
			t.Errorf("%s, at a node where nobody is: %+v", name, got)
		}
	}
}

func TestParametersOfWhatIsDetached(t *testing.T) {
	as := func(name, parameters string) ledger.Event {
		return keepsOff(name, func(k *ledger.Ticket) { k.Parameters = parameters })
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, as("m", "a=b"), as("o", "c=d"))
	r := TicketRequest(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}))
	if got := (Arbiter{}).AttachedOtherwise(p.snapshot, r, ledger.Detached); !got.Allowed() {
		t.Errorf("%+v", got)
	}
	w := evaluation{snapshot: p.snapshot, request: r, node: ledger.Detached, now: auditTime}
	if got := w.incompatible(w.snapshot.Volume(disk), Need{Name: "data", Volume: disk}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestFullForWhoIsPlaced(t *testing.T) {
	other := ledger.PersistentVolume{Name: "other", Version: "1", Volume: ledger.VolumeID{Driver: "d", Handle: "o"}, Access: ledger.AccessNode}
	late := asksAt("late", ledger.TypeManual, "well", func(k *ledger.Ticket) {
		k.Created, k.Volumes = 9, []ledger.TicketVolume{{PersistentVolume: "other"}}
	})
	for name, test := range map[string]struct {
		places bool
		limit  int32
		full   bool
	}{
		"room for one, and one is behind": {true, 1, false},
		"and for who asks for this node":  {false, 1, false},
		"room for both":                   {false, 2, false},
		"no room":                         {true, 0, true},
		"room for both, placed":           {true, 2, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, other, late,
			ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: test.limit}}})
		w := evaluation{snapshot: p.snapshot, node: "well", now: auditTime, places: test.places, request: Request{Type: ledger.TypeManual, Created: 5, Needs: []Need{{Name: "data", Volume: disk, Access: ledger.AccessNode}}}}
		if reason, full := w.full(p.snapshot.Node("well"), "d"); full != test.full {
			t.Errorf("%s: %+v", name, reason)
		}
	}
}
