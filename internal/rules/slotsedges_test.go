// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func slotted(t *testing.T, more ...ledger.Event) *Queue {
	t.Helper()
	there := ledger.VolumeID{Driver: "d", Handle: "there"}
	facts := []ledger.Event{
		ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}, {Name: "e", Limit: 4}}},
		ledger.Driver{Name: "nfs", Version: "1"},
		ledger.PersistentVolume{Name: "there", Version: "1", Volume: there, Access: ledger.AccessNode},
		ledger.PersistentVolume{Name: "asked", Version: "1", Volume: ledger.VolumeID{Driver: "d", Handle: "asked"}, Access: ledger.AccessNode},
		ledger.Attachment{Name: ledger.AttachmentName(there, "well"), UID: "at", Version: "1", Driver: "d", Node: "well", PersistentVolume: "there", Ours: true, Attached: true},
		asksAt("first", ledger.TypeManual, "well", func(k *ledger.Ticket) { k.Volumes = []ledger.TicketVolume{{PersistentVolume: "asked"}} }),
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append(facts, more...)...)
	return Arbiter{}.Queue(p.snapshot, "well", auditTime)
}

func needing(volumes ...string) Request {
	r := Request{Type: ledger.TypeManual, Who: ledger.Requester{Ticket: true, Namespace: "shop", Name: "r", UID: "r"}, Ticket: ledger.TicketID{Namespace: "shop", Name: "r"}}
	for _, v := range volumes {
		r.Needs = append(r.Needs, Need{Name: v, Volume: ledger.VolumeID{Driver: v[:1], Handle: v[2:]}, Access: ledger.AccessNode})
	}
	return r
}

func TestHandedOut(t *testing.T) {
	give, keep := (*Queue).give, (*Queue).keep
	type done struct {
		do func(*Queue, Request)
		r  Request
	}
	for name, test := range map[string]struct {
		done []done
		d, e handed
	}{
		"nothing":                          {nil, handed{}, handed{}},
		"given":                            {[]done{{give, needing("d/1")}}, handed{1, 0}, handed{}},
		"given twice":                      {[]done{{give, needing("d/1")}, {give, needing("d/1")}}, handed{1, 0}, handed{}},
		"kept":                             {[]done{{keep, needing("d/1")}}, handed{0, 1}, handed{}},
		"kept twice":                       {[]done{{keep, needing("d/1")}, {keep, needing("d/1")}}, handed{0, 1}, handed{}},
		"kept, then given":                 {[]done{{keep, needing("d/1")}, {give, needing("d/1")}}, handed{1, 0}, handed{}},
		"kept, then given twice":           {[]done{{keep, needing("d/1")}, {give, needing("d/1")}, {give, needing("d/1")}}, handed{1, 0}, handed{}},
		"given, then kept":                 {[]done{{give, needing("d/1")}, {keep, needing("d/1")}}, handed{1, 0}, handed{}},
		"kept, and another given":          {[]done{{keep, needing("d/1")}, {give, needing("d/2")}}, handed{1, 1}, handed{}},
		"of two drivers":                   {[]done{{keep, needing("d/1", "e/1", "e/2")}, {give, needing("e/1")}}, handed{0, 1}, handed{1, 1}},
		"of two drivers, the same handles": {[]done{{keep, needing("d/1")}, {give, needing("e/1")}}, handed{0, 1}, handed{1, 0}},
		"asked for by tickets only":        {[]done{{keep, needing("d/asked")}, {give, needing("d/asked")}}, handed{1, 0}, handed{}},
		"it has one, given":                {[]done{{give, needing("d/there", "d/1")}}, handed{1, 0}, handed{}},
		"it has one, kept":                 {[]done{{keep, needing("d/there")}}, handed{}, handed{}},
		"it has one, kept, then given":     {[]done{{keep, needing("d/there")}, {give, needing("d/there")}}, handed{}, handed{}},
		"of a driver that attaches none":   {[]done{{give, needing("e/1")}, {keep, needing("e/2")}}, handed{}, handed{1, 1}},
	} {
		q := slotted(t, ledger.Driver{Name: "e", Version: "1"})
		for _, each := range test.done {
			each.do(q, each.r)
		}
		if q.slots.handed["d"] != test.d || q.slots.handed["e"] != test.e {
			t.Errorf("%s: %+v", name, q.slots.handed)
		}
	}
}

func TestLeavesOfAQueue(t *testing.T) {
	asked := ledger.VolumeID{Driver: "d", Handle: "asked"}
	of := func(name string, pv string, changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt(name, ledger.TypeManual, "well", append([]func(*ledger.Ticket){func(k *ledger.Ticket) { k.Volumes = []ledger.TicketVolume{{PersistentVolume: pv}} }}, changes...)...)
	}
	other := func(access ledger.Access) ledger.Event {
		return ledger.PersistentVolume{Name: "other", Version: "1", Volume: ledger.VolumeID{Driver: "e", Handle: "other"}, Access: access}
	}
	podOf := func(phase ledger.PodPhase) ledger.Event {
		return ledger.Pod{UID: "q", Version: "1", Namespace: "shop", Name: "q", Node: "well", Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Inline: asked}}}
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		d, e  int32
	}{
		"asked for":               {nil, 1, 0},
		"by two":                  {[]ledger.Event{of("second", "asked")}, 1, 0},
		"and another driver's":    {[]ledger.Event{other(ledger.AccessNode), of("second", "other")}, 1, 1},
		"attached":                {[]ledger.Event{of("second", "there")}, 1, 0},
		"granted to another":      {[]ledger.Event{of("second", "asked", grantedNow)}, 0, 0},
		"a pod has it":            {[]ledger.Event{podOf(ledger.PodLive)}, 0, 0},
		"a pod leaves":            {[]ledger.Event{podOf(ledger.PodTerminating)}, 0, 0},
		"one may be granted":      {[]ledger.Event{of("second", "asked"), ledger.TicketInDoubt{ID: ledger.TicketID{Namespace: "shop", Name: "second"}, UID: "second"}}, 0, 0},
		"one that asks elsewhere": {[]ledger.Event{of("second", "asked", func(k *ledger.Ticket) { k.Node = "dead" })}, 1, 0},
	} {
		q := slotted(t, test.facts...)
		if q.slots.leaving["d"] != test.d || q.slots.leaving["e"] != test.e || q.slots.leaves[asked] != (test.d == 1) {
			t.Errorf("%s: %v, %v", name, q.slots.leaving, q.slots.leaves)
		}
	}
}

func TestTakesOfAQueue(t *testing.T) {
	v := ledger.VolumeID{Driver: "d", Handle: "h"}
	place, only := &ledger.VolumeOnNode{}, map[ledger.VolumeID]bool{v: true}
	for name, test := range map[string]struct {
		s    slots
		p    *ledger.VolumeOnNode
		want bool
	}{
		"it is there":            {slots{}, place, true},
		"it is not there":        {slots{}, nil, false},
		"for tickets only":       {slots{leaves: only}, place, false},
		"not there, given":       {slots{given: only}, nil, true},
		"not there, kept":        {slots{kept: only}, nil, true},
		"for tickets, given":     {slots{leaves: only, given: only}, place, true},
		"for tickets, kept":      {slots{leaves: only, kept: only}, place, true},
		"not there, for tickets": {slots{leaves: only}, nil, false},
	} {
		if got := test.s.takes(v, test.p); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestUsedOfAQueue(t *testing.T) {
	s := slots{leaving: map[string]int32{"d": 2}, handed: map[string]handed{"d": {given: 3, kept: 4}}}
	state := ledger.NodeDriver{DriverOnNode: ledger.DriverOnNode{Name: "d"}, Used: 7}
	if got := s.used(state); got != 12 {
		t.Errorf("used %d, want 7 - 2 + 3 + 4", got)
	}
	for limit, want := range map[int32]int32{5: 8, 8: 8, 10: 10, 12: 12, 20: 12} {
		if got := s.told(state, 12, limit); got != want {
			t.Errorf("of %d slots %d are told to be used, want %d", limit, got, want)
		}
	}
	if got := s.told(state, 6, 10); got != 6 {
		t.Errorf("told %d, want 6", got)
	}
}

func TestFirstElsewhere(t *testing.T) {
	waits := func(name string, n ledger.NodeName, created int64, changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt(name, ledger.TypeManual, n, append([]func(*ledger.Ticket){func(k *ledger.Ticket) { k.Created, k.Reason = created, string(NoFreeSlot) }}, changes...)...)
	}
	third := ledger.NodeState{Name: "third", UID: "t", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	told := func(c ledger.Code) func(*ledger.Ticket) { return func(k *ledger.Ticket) { k.Reason = string(c) } }
	for name, test := range map[string]struct {
		facts []ledger.Event
		who   string
		at    ledger.NodeName
	}{
		"nobody":                     {nil, "", ""},
		"one":                        {[]ledger.Event{waits("a", "dead", 1)}, "a", "dead"},
		"at the queue's node":        {[]ledger.Event{waits("a", "well", 1)}, "", ""},
		"the first is here":          {[]ledger.Event{waits("a", "well", 1), waits("b", "dead", 2)}, "b", "dead"},
		"the first of two":           {[]ledger.Event{waits("a", "dead", 2), waits("b", "dead", 1)}, "b", "dead"},
		"the first of two nodes":     {[]ledger.Event{waits("a", "dead", 2), waits("b", "third", 1)}, "b", "third"},
		"the first of the first":     {[]ledger.Event{waits("a", "dead", 1), waits("b", "third", 2)}, "a", "dead"},
		"it waits for others":        {[]ledger.Event{waits("a", "dead", 1, told(HeldElsewhere)), waits("b", "third", 2)}, "b", "third"},
		"it has not been told":       {[]ledger.Event{waits("a", "dead", 1, told(""))}, "", ""},
		"it was granted":             {[]ledger.Event{waits("a", "dead", 1, grantedNow)}, "", ""},
		"it yields":                  {[]ledger.Event{waits("a", "dead", 1, func(k *ledger.Ticket) { k.Type = ledger.TypeBackup })}, "", ""},
		"a pod is there":             {[]ledger.Event{dataAt("q", "dead", ledger.PodLive)}, "", ""},
		"a pod, and one that waits":  {[]ledger.Event{dataAt("q", "dead", ledger.PodLive), waits("b", "dead", 1)}, "b", "dead"},
		"nobody waits at one of two": {[]ledger.Event{madeAt("dead"), waits("b", "third", 1)}, "b", "third"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{third}, test.facts...)...)
		first := Arbiter{}.Queue(p.snapshot, "well", auditTime).firstElsewhere(disk)
		if first.request.Who.Name != test.who || first.node != test.at {
			t.Errorf("%s: %s at %q, want %s at %q", name, first.request.Who, first.node, test.who, test.at)
		}
	}
	if first := slotted(t).firstElsewhere(ledger.VolumeID{Driver: "d", Handle: "unknown"}); first.node != "" {
		t.Errorf("of a volume that nobody knows: %+v", first)
	}
}

// An earlier ticket at another node keeps slots there; a later ticket does not.
func TestKeptElsewhere(t *testing.T) {
	waits := asksAt("a", ledger.TypeManual, "dead", func(k *ledger.Ticket) { k.Created, k.Reason = 5, string(NoFreeSlot) })
	for name, test := range map[string]struct {
		created int64
		needs   []string
		want    bool
	}{
		"who ranks after":              {9, []string{"d/h"}, true},
		"who ranks before":             {1, []string{"d/h"}, false},
		"for another volume":           {9, []string{"d/1"}, false},
		"another, and that one":        {9, []string{"d/1", "d/h"}, true},
		"of what needs no slot, first": {9, []string{"n/1", "d/h"}, true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, waits, ledger.Driver{Name: "n", Version: "1"})
		q, r := Arbiter{}.Queue(p.snapshot, "well", auditTime), needing(test.needs...)
		r.Created = test.created
		for range 2 { // the second time it is known
			first, is := q.keptElsewhere(r)
			if is != test.want || is && (first.need.Volume != disk || first.node != "dead" || first.request.Who.Name != "a") {
				t.Errorf("%s: %t, %+v", name, is, first)
			}
		}
	}
}

func TestTooFewSlots(t *testing.T) {
	full := func(driver string, limit int32) Reason {
		return Reason{Code: NoFreeSlot, Driver: driver, Node: "well", Limit: limit, Used: 1, Needed: 1}
	}
	q := slotted(t, ledger.Driver{Name: "n", Version: "1"})
	for name, test := range map[string]struct {
		needs   []string
		reasons []Reason
		want    map[string]int32
	}{
		"as many as there are":     {[]string{"d/1", "d/2"}, []Reason{full("d", 2)}, nil},
		"one more":                 {[]string{"d/1", "d/2", "d/3"}, []Reason{full("d", 2)}, map[string]int32{"d": 3}},
		"of two drivers":           {[]string{"d/1", "d/2", "e/1"}, []Reason{full("d", 2), full("e", 0)}, map[string]int32{"e": 1}},
		"of both":                  {[]string{"d/1", "e/1"}, []Reason{full("d", 0), full("e", 0)}, map[string]int32{"d": 1, "e": 1}},
		"of another driver":        {[]string{"x/1", "x/2"}, []Reason{full("n", 1)}, nil},
		"of what is not attached":  {[]string{"n/1", "n/2"}, []Reason{full("n", 1)}, map[string]int32{"n": 2}},
		"of one that lacks enough": {[]string{"d/1", "e/1"}, []Reason{full("d", 1)}, nil},
	} {
		got := map[string]int32{}
		for _, r := range q.tooFew(needing(test.needs...), test.reasons) {
			if r.Code != SlotsNotKept || r.Node != "well" {
				t.Errorf("%s: %+v", name, r)
			}
			got[r.Driver] = r.Needed
		}
		if len(got) != len(test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		for driver, n := range test.want {
			if got[driver] != n {
				t.Errorf("%s: %v, want %v", name, got, test.want)
			}
		}
	}
}

// A tool's ticket is told missing slots last, and only if it keeps free slots.
func TestSlotsLast(t *testing.T) {
	noSlot := Reason{Code: NoFreeSlot, Driver: "d", Node: "well", Limit: 1}
	held := Reason{Code: HeldElsewhere, Volume: disk}
	for name, test := range map[string]struct {
		kind    ledger.TicketType
		needs   []string
		reasons []Reason
		want    []ledger.Code
	}{
		"something else":   {ledger.TypeManual, []string{"d/1", "d/2"}, []Reason{noSlot, held}, []ledger.Code{HeldElsewhere}},
		"slots":            {ledger.TypeManual, []string{"d/1"}, []Reason{noSlot}, []ledger.Code{NoFreeSlot}},
		"hopeless":         {ledger.TypeManual, []string{"d/1", "d/2"}, []Reason{noSlot}, []ledger.Code{SlotsNotKept}},
		"hopeless, yields": {ledger.TypeBackup, []string{"d/1", "d/2"}, []Reason{noSlot}, []ledger.Code{NoFreeSlot}},
		"kept elsewhere":   {ledger.TypeManual, []string{"d/h"}, []Reason{noSlot}, []ledger.Code{SlotsNotKept}},
	} {
		waits := asksAt("a", ledger.TypeManual, "dead", func(k *ledger.Ticket) { k.Created, k.Reason = 5, string(NoFreeSlot) })
		r := needing(test.needs...)
		r.Created = 9
		got := slotted(t, waits).slotsLast(&ledger.Ticket{Type: test.kind}, r, refuse(test.reasons))
		if list := codes(got.Reasons); !slices.Equal(list, test.want) {
			t.Errorf("%s: %q, want %q", name, list, test.want)
		}
		if name == "kept elsewhere" {
			if f := got.First(); f.Node != "dead" || f.Volume != disk || f.Claim != "d/h" || f.Who.Name != "a" || f.Driver != "d" {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

// An unknown source means the strictest of the driver's policies, but not its delay.
func TestStrictestOfAll(t *testing.T) {
	policy := func(class string, after time.Duration) ledger.Event {
		return ledger.Policy{Name: "p" + class, Version: "1", Driver: "d", Class: class, AfterPodGone: &after, DetachDelay: after}
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  time.Duration
	}{
		"the driver's":        {[]ledger.Event{policy("", 10*time.Minute), policy("fast", time.Minute)}, 10 * time.Minute},
		"its own":             {[]ledger.Event{policy("", 10*time.Minute), policy("fast", time.Hour)}, time.Hour},
		"of another class":    {[]ledger.Event{policy("", 10*time.Minute), policy("fast", time.Minute), policy("slow", 20*time.Minute)}, 20 * time.Minute},
		"of two more classes": {[]ledger.Event{policy("", 10*time.Minute), policy("fast", time.Minute), policy("slow", 20*time.Minute), policy("slower", 30*time.Minute)}, 30 * time.Minute},
	} {
		s := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...).snapshot
		fast := PolicyFor(s, "d", "fast")
		got := strictestOfAll(s, "d", fast)
		if got.AfterPodGone == nil || *got.AfterPodGone != test.want || got.DetachDelay != fast.DetachDelay {
			t.Errorf("%s: %v after the pod has gone, a delay of %s; want %s and %s", name, got.AfterPodGone, got.DetachDelay, test.want, fast.DetachDelay)
		}
	}
}
