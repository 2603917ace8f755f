// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A volume may be at many nodes only where it is known to be shared, or names no access mode.
func TestExclusive(t *testing.T) {
	for access, want := range map[ledger.Access]bool{
		ledger.AccessUnknown: true, ledger.AccessUnset: false, ledger.AccessMany: false, ledger.AccessNode: true, ledger.AccessPod: true,
	} {
		if got := exclusive(access); got != want {
			t.Errorf("access %s: %t", access, got)
		}
	}
}

// The hold promises the volume to the request where it is next, or listed at the holder's
// node. Of requests at other nodes a hold lists live migrations, which share the volume.
func TestPromisedToRequest(t *testing.T) {
	r := needing("d/h")
	listed := []ledger.Requester{{UID: "other"}, r.Who}
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   bool
	}{
		"it is next":          {"dead", ledger.Hold{Next: ledger.Promise{Node: "well", To: r.Who}}, nil, true},
		"another is next":     {"dead", ledger.Hold{Next: ledger.Promise{Node: "well", To: ledger.Requester{UID: "other"}}}, nil, false},
		"listed here":         {"well", ledger.Hold{Requesters: listed}, nil, true},
		"others are":          {"well", ledger.Hold{Requesters: listed[:1]}, nil, false},
		"listed at the other": {"dead", ledger.Hold{Requesters: listed}, nil, false},
		"no hold":             {"well", ledger.Hold{Requesters: listed}, []ledger.Event{ledger.HoldGone{Volume: disk}}, false},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, test.facts...)
		if got := (view{snapshot: p.snapshot, request: r, node: "well", now: auditTime}).promisedToRequest(p.volume); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Whoever keeps a volume from a request to which the controller has promised it has it
// given back. A scheduler is told who has it, and so is who waits for one that only keeps away.
func TestHeldByWhom(t *testing.T) {
	r := needing("d/h")
	promised := ledger.Hold{Next: ledger.Promise{Node: "well", To: r.Who}}
	ticket := ledger.User{Ticket: ledger.TicketID{Namespace: "shop", Name: "m"}}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		user  ledger.User
		want  ledger.Code
	}{
		"a pod lives":          {promised, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, ledger.User{Pod: "q"}, Outranked},
		"a ticket asks":        {promised, []ledger.Event{asksAt("m", ledger.TypeManual, "dead")}, ticket, Outranked},
		"a ticket is granted":  {promised, []ledger.Event{asksAt("m", ledger.TypeManual, "dead", grantedNow)}, ticket, Outranked},
		"a pod, not promised":  {ledger.Hold{}, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, ledger.User{Pod: "q"}, HeldElsewhere},
		"asks, none is made":   {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeManual, "dead")}, ticket, HeldElsewhere},
		"a pod lives, another": {ledger.Hold{Next: ledger.Promise{Node: "well", To: ledger.Requester{UID: "o"}}}, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, ledger.User{Pod: "q"}, HeldElsewhere},
	} {
		p := plannerOf(t, Arbiter{}, "dead", test.hold, append([]ledger.Event{alive}, test.facts...)...)
		w := view{snapshot: p.snapshot, request: r, node: "well", now: auditTime}
		if got := w.heldBy(p.volume, p.at("dead"), test.user, "data", HeldElsewhere); got.Code != HeldElsewhere || got.Node != "dead" || got.Claim != "data" {
			t.Errorf("%s, to a scheduler: %+v", name, got)
		}
		w.queue = Arbiter{}.Queue(p.snapshot, "well", auditTime)
		if got := w.heldBy(p.volume, p.at("dead"), test.user, "data", HeldElsewhere); got.Code != test.want || got.Who != requester(p.snapshot, test.user) {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

// What keeps an exclusive volume from a request, in one list: who has it, in words that fit
// its access mode; what attachment nobody can place; who is tried with it. Only where that
// is nothing, and somebody elsewhere was passed over, the hold is asked as well.
func TestWhatIsNotFree(t *testing.T) {
	here, there := dataAt("q", "well", ledger.PodLive), dataAt("q", "dead", ledger.PodLive)
	asks := asksAt("m", ledger.TypeManual, "dead")
	promise := ledger.Hold{Next: ledger.Promise{Node: "dead", To: ledger.Requester{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}}}
	theirs := ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "third", PersistentVolume: "pv", Attached: true}
	onePod := sharedDisk
	onePod.Access = ledger.AccessPod
	for name, test := range map[string]struct {
		hold  ledger.Hold
		tried ledger.NodeName
		facts []ledger.Event
		want  []ledger.Code
	}{
		"nobody":                              {ledger.Hold{}, "", nil, nil},
		"somebody here":                       {ledger.Hold{}, "", []ledger.Event{here}, nil},
		"somebody here, for one pod":          {ledger.Hold{}, "", []ledger.Event{here, onePod}, []ledger.Code{UsedByOtherPod}},
		"somebody there":                      {ledger.Hold{}, "", []ledger.Event{there}, []ledger.Code{HeldElsewhere}},
		"somebody there, for one pod":         {ledger.Hold{}, "", []ledger.Event{there, onePod}, []ledger.Code{UsedByOtherPod}},
		"somebody there, shared":              {ledger.Hold{}, "", []ledger.Event{there, sharedDisk}, nil},
		"somebody is tried there":             {ledger.Hold{}, "dead", nil, []ledger.Code{HeldElsewhere}},
		"one there, and another is tried":     {ledger.Hold{}, "dead", []ledger.Event{there}, []ledger.Code{HeldElsewhere, HeldElsewhere}},
		"one asks there, passed over":         {ledger.Hold{}, "", []ledger.Event{here, asks}, nil},
		"passed over, and promised":           {promise, "", []ledger.Event{here, asks}, []ledger.Code{HeldElsewhere}},
		"passed over, promised, and theirs":   {promise, "", []ledger.Event{here, asks, theirs}, []ledger.Code{ForeignAttachment}},
		"passed over, promised, and is tried": {promise, "dead", []ledger.Event{here, asks}, []ledger.Code{HeldElsewhere, HeldElsewhere}},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, append([]ledger.Event{alive, dataAt("new", "", ledger.PodLive)}, test.facts...)...)
		s := p.snapshot
		if test.tried != "" {
			d := &ledger.Delta{}
			d.Add("new", test.tried)
			s = s.With(d)
		}
		w := view{snapshot: s, request: Request{Pod: "asks", Who: ledger.Requester{UID: "asks"}, Created: 5}, node: "well", now: auditTime}
		if got := codes(w.free(s.Volume(disk), Need{Name: "data", Volume: disk, Access: ledger.AccessNode})); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
