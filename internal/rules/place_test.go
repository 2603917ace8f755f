// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func placing(facts ...ledger.Event) (ledger.Snapshot, *ledger.Ticket) {
	l, now := ledger.New(), time.Unix(1000, 0)
	all := []ledger.Event{
		ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: "h"}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, UID: "data", Version: "1", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode},
	}
	for _, n := range []ledger.NodeName{"a", "b", "c"} {
		all = append(all, placeNode(n), slotsOf(n, 4))
	}
	ticket := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "shop", Name: "t"}, UID: "t", Version: "1", Type: ledger.TypeBackup, Wherever: true,
		Volumes: []ledger.TicketVolume{{Claim: "data"}},
	}
	for _, e := range append(append(all, ticket), facts...) {
		l.Apply(now, e)
	}
	s := l.Snapshot()
	return s, s.Ticket(ticket.ID)
}

func placeNode(n ledger.NodeName, change ...func(*ledger.NodeState)) ledger.NodeState {
	state := ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	for _, c := range change {
		state.Version = "2"
		c(&state)
	}
	return state
}

func slotsOf(n ledger.NodeName, limit int32) ledger.NodeDrivers {
	return ledger.NodeDrivers{Node: n, Version: string('0' + rune(9-limit)), Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: limit}}}
}

func putAt(n ledger.NodeName) ledger.Ticket {
	return ledger.Ticket{
		ID: ledger.TicketID{Namespace: "shop", Name: "t"}, UID: "t", Version: "2", Type: ledger.TypeBackup, Wherever: true, Node: n,
		Volumes: []ledger.TicketVolume{{Claim: "data"}},
	}
}

func usesAt(n ledger.NodeName) ledger.Pod {
	return ledger.Pod{UID: "p", Version: "1", Namespace: "shop", Name: "db", Node: n, Phase: ledger.PodLive, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
}

func attachedAt(n ledger.NodeName) ledger.Attachment {
	return ledger.Attachment{Name: "va", UID: "va", Version: "1", Driver: "disk", Node: n, PersistentVolume: "pv", Attached: true}
}

// A ticket goes to its volume's node, else to the best, and stays while it fits.
func TestPlace(t *testing.T) {
	down := func(s *ledger.NodeState) { s.Ready = ledger.ReadyUnknown }
	cordoned := func(s *ledger.NodeState) { s.Draining = true }
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  ledger.NodeName
	}{
		"all are alike":                {nil, "a"},
		"it is there already":          {[]ledger.Event{putAt("b")}, "b"},
		"a pod has the volume":         {[]ledger.Event{usesAt("c")}, "c"},
		"the pod has moved":            {[]ledger.Event{putAt("b"), usesAt("c")}, "c"},
		"at a node that is down":       {[]ledger.Event{usesAt("c"), placeNode("c", down)}, "c"},
		"attached, and nobody's":       {[]ledger.Event{attachedAt("b")}, "b"},
		"the first is down":            {[]ledger.Event{placeNode("a", down)}, "b"},
		"the first is cordoned":        {[]ledger.Event{placeNode("a", cordoned)}, "b"},
		"its own is cordoned":          {[]ledger.Event{putAt("b"), placeNode("b", cordoned)}, "a"},
		"its own is gone":              {[]ledger.Event{putAt("b"), ledger.NodeGone{Name: "b"}}, "a"},
		"the first has no slot":        {[]ledger.Event{slotsOf("a", 0)}, "b"},
		"the second has more":          {[]ledger.Event{slotsOf("a", 1), slotsOf("c", 1)}, "b"},
		"no node has a slot":           {[]ledger.Event{slotsOf("a", 0), slotsOf("b", 0), slotsOf("c", 0)}, "a"},
		"and it waits for one already": {[]ledger.Event{putAt("b"), slotsOf("a", 0), slotsOf("b", 0), slotsOf("c", 0)}, "b"},
		"all are down":                 {[]ledger.Event{placeNode("a", down), placeNode("b", down), placeNode("c", down)}, ""},
	} {
		s, ticket := placing(test.facts...)
		if n, v := (rules.Arbiter{}).Place(s, ticket, time.Unix(1000, 0)); n != test.want || v.Allowed() {
			t.Errorf("%s: %q (%s), want %q", name, n, v.First().Message(), test.want)
		}
	}
}

func TestPlaceNowhere(t *testing.T) {
	zone := func(s *ledger.NodeState) { s.Labels = map[string]string{"zone": "z1"} }
	elsewhere := ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "2", Volume: ledger.VolumeID{Driver: "disk", Handle: "h"}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"},
		Affinity: ledger.NewNodeAffinity(ledger.NodeTerm{Labels: []ledger.NodeRequirement{{Key: "zone", Operator: ledger.NodeIn, Values: []string{"z2"}}}})}
	gone := []ledger.Event{ledger.NodeGone{Name: "a"}, ledger.NodeGone{Name: "b"}, ledger.NodeGone{Name: "c"}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		code  ledger.Code
		says  string
	}{
		"no node":          {gone, rules.NoNode, "no node is ready"},
		"another zone":     {[]ledger.Event{placeNode("a", zone), placeNode("b", zone), placeNode("c", zone), elsewhere}, rules.NoNode, "no node can take its volumes"},
		"no such claim":    {[]ledger.Event{ledger.ClaimGone{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}}}, rules.ClaimMissing, "data"},
		"no driver at all": {[]ledger.Event{ledger.NodeDriversGone{Node: "a"}, ledger.NodeDriversGone{Node: "b"}, ledger.NodeDriversGone{Node: "c"}}, rules.NoNode, "driver disk"},
	} {
		s, ticket := placing(test.facts...)
		n, v := (rules.Arbiter{}).Place(s, ticket, time.Unix(1000, 0))
		if n != "" || v.First().Code != test.code || !strings.Contains(v.First().Message(), test.says) {
			t.Errorf("%s: %q, %s: %s", name, n, v.First().Code, v.First().Message())
		}
		if len(s.TicketAt(ticket.ID)) > 0 && s.TicketAt(ticket.ID)[0].IsReal() {
			t.Errorf("%s: a ticket without a node uses %v", name, s.TicketAt(ticket.ID))
		}
	}
}

// A granted ticket for any node loses its grant at a fenced node without a rival.
func TestWhereverLeavesAFencedNode(t *testing.T) {
	out := func(s *ledger.NodeState) { s.Ready, s.OutOfService = ledger.ReadyUnknown, true }
	for wherever, keeps := range map[bool]bool{true: false, false: true} {
		granted := putAt("b")
		granted.Phase, granted.Wherever = ledger.TicketGranted, wherever
		hold := ledger.HoldSeen{Volume: ledger.VolumeID{Driver: "disk", Handle: "h"}, Hold: ledger.Hold{Version: "1", Node: "b", NodeUID: "b", State: ledger.HoldHeld}}
		s, ticket := placing(granted, attachedAt("b"), hold, placeNode("b", out))
		if v := (rules.Arbiter{}).Keeps(s, ticket, time.Unix(1000, 0)); v.Allowed() != keeps {
			t.Errorf("wherever %t: keeps its grant %t: %v", wherever, v.Allowed(), v.Reasons)
		}
	}
}

// The interval for the next choice grows with each failed choice.
func TestPlacedAgain(t *testing.T) {
	_, ticket := placing()
	for age, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 20 * time.Minute: 2 * time.Minute, 24 * time.Hour: 5 * time.Minute} {
		k := *ticket
		k.Created = 1000
		if got := rules.PlacedAgain(&k, time.Unix(1000, 0).Add(age)); got != want {
			t.Errorf("after %s: %s, want %s", age, got, want)
		}
		k.Phase = ledger.TicketGranted
		if got := rules.PlacedAgain(&k, time.Unix(1000, 0).Add(age)); got != 0 {
			t.Errorf("a granted one is looked at after %s", got)
		}
	}
}
