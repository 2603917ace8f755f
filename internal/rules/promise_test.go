// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

var promised = ledger.VolumeID{Driver: "d", Handle: "data"}

func promising(now time.Time, events ...ledger.Event) *ledger.Ledger {
	l := ledger.New()
	key := ledger.ClaimKey{Namespace: "s", Name: "data"}
	all := []ledger.Event{
		ledger.PersistentVolume{Name: "pv", Version: "1", Volume: promised, Access: ledger.AccessNode, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode},
	}
	for _, n := range []ledger.NodeName{"n1", "n2"} {
		all = append(all,
			ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
			ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}}})
	}
	for _, e := range append(all, events...) {
		l.Apply(now, e)
	}
	return l
}

func asksFor(name string, kind ledger.TicketType, n ledger.NodeName) ledger.Ticket {
	t := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: name}, UID: "t-" + name, Version: "1", Type: kind, Node: n, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	return t
}

func usesData(name string, n ledger.NodeName, phase ledger.PodPhase) ledger.Pod {
	return ledger.Pod{UID: name, Version: "1", Namespace: "s", Name: name, Node: n, Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
}

func podNamed(name string) ledger.Requester {
	return ledger.Requester{Namespace: "s", Name: name, UID: name}
}

// Otherwise grants and refusals may alternate forever (found by the explorer).
func TestAnOldHoldTakesNoGrantBack(t *testing.T) {
	now := time.Unix(1000, 0)
	asks := asksFor("asks", ledger.TypeManual, "n2")
	asks.Phase = ledger.TicketGranted
	hold := ledger.HoldSeen{Volume: promised, Hold: ledger.Hold{Version: "2", Node: "n1", NodeUID: "n1", Transitions: 1, State: ledger.HoldHeld, PVs: []string{"pv"},
		Requesters: []ledger.Requester{podNamed("old")}}}
	attached := ledger.Attachment{Name: ledger.AttachmentName(promised, "n1"), UID: "a", Version: "1", Driver: "d", Node: "n1", PersistentVolume: "pv", Ours: true, Attached: true}
	for name, test := range map[string]struct {
		events []ledger.Event
		keeps  bool
	}{
		"nobody is there":      {nil, true},
		"somebody lives there": {[]ledger.Event{usesData("old", "n1", ledger.PodLive)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := promising(now, append(test.events, usesData("asks", "", ledger.PodLive), asks, hold, attached)...).Snapshot()
			if verdict := (rules.Arbiter{}).Keeps(s, s.Ticket(asks.ID), now); verdict.Allowed() != test.keeps {
				t.Errorf("verdict %+v, want that it keeps the grant: %v", verdict, test.keeps)
			}
		})
	}
}

func TestWhoWaitsForASlotIsSettled(t *testing.T) {
	now := time.Unix(1000, 0)
	full := ledger.NodeDrivers{Node: "n2", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 0}}}
	s := promising(now, full, asksFor("asks", ledger.TypeManual, "n2")).Snapshot()
	if found := (rules.Arbiter{}).AuditAtRest(s, now); len(found) != 0 {
		t.Errorf("%v, want nothing", found)
	}
}
