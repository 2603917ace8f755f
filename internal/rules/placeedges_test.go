// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestTakesTickets(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ledger.Node)
		want   bool
	}{
		"it does":                   {func(*ledger.Node) {}, true},
		"it is gone":                {func(n *ledger.Node) { n.Exists = false }, false},
		"not Ready":                 {func(n *ledger.Node) { n.Ready = ledger.ReadyFalse }, false},
		"another controller's":      {func(n *ledger.Node) { n.Managed = false }, false},
		"cordoned":                  {func(n *ledger.Node) { n.Draining = true }, false},
		"Ready, and out of service": {func(n *ledger.Node) { n.OutOfService = true }, false},
	} {
		n := &ledger.Node{Exists: true, NodeState: ledger.NodeState{Ready: ledger.ReadyTrue, Managed: true}}
		test.change(n)
		if got := takesTickets(n); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if takesTickets(nil) {
		t.Error("a node that nobody knows takes tickets")
	}
}

// Between nodes without slots, the ticket's present node comes first.
func TestWhichNodeComesBefore(t *testing.T) {
	for name, test := range map[string]struct {
		c, o candidate
		has  ledger.NodeName
		want bool
	}{
		"it fits":                           {candidate{"b", fits, 1}, candidate{"a", lacksSlots, 5}, "a", true},
		"the other fits":                    {candidate{"a", lacksSlots, 5}, candidate{"b", fits, 1}, "a", false},
		"neither fits, it lacks only slots": {candidate{"b", lacksSlots, 1}, candidate{"a", noFit, 5}, "", true},
		"by rank":                           {candidate{"b", fits, 5}, candidate{"a", fits, 1}, "a", true},
		"by rank, the other":                {candidate{"a", fits, 1}, candidate{"b", fits, 5}, "a", false},
		"by name":                           {candidate{"a", fits, 1}, candidate{"b", fits, 1}, "b", true},
		"by name, the other":                {candidate{"b", fits, 1}, candidate{"a", fits, 1}, "b", false},
		"it waits there":                    {candidate{"b", lacksSlots, 1}, candidate{"a", lacksSlots, 5}, "b", true},
		"it waits at the other":             {candidate{"b", lacksSlots, 5}, candidate{"a", lacksSlots, 1}, "a", false},
		"it waits at none of them":          {candidate{"b", lacksSlots, 5}, candidate{"a", lacksSlots, 1}, "c", true},
		"it has it, and neither takes it":   {candidate{"b", noFit, 1}, candidate{"a", noFit, 5}, "b", false},
	} {
		if got := test.c.before(test.o, test.has); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestPlacedAgainOnlyWhereverItIs(t *testing.T) {
	now := time.Unix(2000, 0)
	for name, test := range map[string]struct {
		wherever bool
		phase    ledger.TicketPhase
		want     time.Duration
	}{
		"it waits":            {true, ledger.TicketPending, 100 * time.Second},
		"it names its node":   {false, ledger.TicketPending, 0},
		"it is granted":       {true, ledger.TicketGranted, 0},
		"neither, and it was": {false, ledger.TicketGranted, 0},
	} {
		if got := PlacedAgain(&ledger.Ticket{Wherever: test.wherever, Phase: test.phase, Created: 1000}, now); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A slot is free for a request if only later pending tickets have it.
func TestSlotsOfThoseBehind(t *testing.T) {
	at := func(created int64, changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("m", ledger.TypeManual, "well", append([]func(*ledger.Ticket){func(k *ledger.Ticket) { k.Created = created }}, changes...)...)
	}
	waitsFor := func(code ledger.Code) func(*ledger.Ticket) { return func(k *ledger.Ticket) { k.Reason = string(code) } }
	early := asksAt("e", ledger.TypeManual, "well", func(k *ledger.Ticket) { k.Created = 1; k.Reason = string(HeldElsewhere) })
	earlyForSlots := asksAt("e", ledger.TypeManual, "well", func(k *ledger.Ticket) { k.Created = 1; k.Reason = string(NoFreeSlot) })
	inDoubtNow := ledger.TicketInDoubt{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "m"}
	for name, test := range map[string]struct {
		facts []ledger.Event
		dry   *ledger.Delta
		want  bool
	}{
		"asks after it":                  {[]ledger.Event{at(6)}, nil, true},
		"asks before it":                 {[]ledger.Event{at(4)}, nil, false},
		"asks as it does, a later name":  {[]ledger.Event{at(5)}, nil, true},
		"is granted":                     {[]ledger.Event{at(6, grantedNow)}, nil, false},
		"after it, and may be granted":   {[]ledger.Event{at(6), inDoubtNow}, nil, false},
		"after it, and a pod lives":      {[]ledger.Event{at(6), dataAt("q", "well", ledger.PodLive)}, nil, false},
		"after it, and a pod leaves":     {[]ledger.Event{at(6), dataAt("q", "well", ledger.PodTerminating)}, nil, false},
		"and the pod goes, in a dry run": {[]ledger.Event{at(6), dataAt("q", "well", ledger.PodLive)}, &ledger.Delta{Removed: map[string]bool{"q": true}}, true},
		"attached there":                 {[]ledger.Event{at(6), madeAt("well")}, nil, false},
		"waits for something else":       {[]ledger.Event{at(6, waitsFor(HeldElsewhere))}, nil, false}, // it takes none
		"before it, and keeps no slot":   {[]ledger.Event{at(6), early}, nil, true},
		"before it, and keeps a slot":    {[]ledger.Event{at(6), earlyForSlots}, nil, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		s := p.snapshot
		if test.dry != nil {
			s = s.With(test.dry)
		}
		w := evaluation{snapshot: s, node: "well", request: Request{Type: ledger.TypeManual, Created: 5, Who: ledger.Requester{Ticket: true, Namespace: "shop", Name: "k", UID: "k"}}}
		if got := w.isBehind(p.at("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		want := int32(0)
		if test.want {
			want = 1
		}
		if got := w.onlyBehind(s.Node("well"), "d"); got != want {
			t.Errorf("%s: %d slots", name, got)
		}
		if got := w.onlyBehind(s.Node("well"), "e"); got != 0 {
			t.Errorf("%s: %d slots of another driver", name, got)
		}
		w.request.Needs = []Need{{Volume: disk}}
		if got := w.onlyBehind(s.Node("well"), "d"); got != 0 {
			t.Errorf("%s: %d slots that the request would have anyway", name, got)
		}
	}
	if (evaluation{}).isBehind(nil) {
		t.Error("what is not there has a slot")
	}
	two := []ledger.Event{at(6), asksAt("n", ledger.TypeManual, "well", func(k *ledger.Ticket) { k.Created = 7 })}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, two...)
	w := evaluation{snapshot: p.snapshot, node: "well", request: Request{Type: ledger.TypeManual, Created: 5}}
	if got := w.onlyBehind(p.snapshot.Node("well"), "d"); got != 1 {
		t.Errorf("one volume that two ask for has %d slots", got)
	}
}

func TestNotGrantedSaysWhich(t *testing.T) {
	if r := (Request{}).notGranted().First(); r.Code != NotGranted || !r.Volume.IsZero() || r.Claim != "" {
		t.Errorf("of a request for nothing: %+v", r)
	}
	if r := (Request{Needs: []Need{{Volume: disk, Name: "data"}}}).notGranted().First(); r.Code != NotGranted || r.Volume != disk || r.Claim != "data" {
		t.Errorf("of a request for a volume: %+v", r)
	}
}
