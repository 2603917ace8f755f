// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestSharedVolumeIsKeptDetachedBeforeItsHold(t *testing.T) {
	now, id := time.Unix(1000, 0), ledger.VolumeID{Driver: "disk", Handle: "h"}
	keeps := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "keeps"}, UID: "keeps", Version: "1", Type: ledger.TypeSalvage, Node: ledger.Detached,
		Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}}
	granted := keeps
	granted.Phase = ledger.TicketGranted
	asks := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "asks"}, UID: "asks", Version: "1", Type: ledger.TypeManual, Node: "n1", Created: 1,
		Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}}
	for name, facts := range map[string][]ledger.Event{
		"granted":  {granted},
		"asks":     {keeps},
		"in doubt": {keeps, ledger.TicketInDoubt{ID: keeps.ID, UID: keeps.UID}},
	} {
		l := ledger.New()
		for _, e := range append([]ledger.Event{
			ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
			ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n1", Limit: 4}}},
			ledger.PersistentVolume{Name: "pv", Version: "1", Volume: id, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "s", Name: "data"}},
			ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "data"}, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true, Access: ledger.AccessMany},
			ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Phase: ledger.PodLive, Created: 1, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
			asks,
		}, facts...) {
			l.Apply(now, e)
		}
		s := l.Snapshot()
		if v := (Arbiter{}).Fit(s, PodRequest(s, s.Pod("p")), "n1", now); v.Allowed() {
			t.Errorf("%s: a pod gets it", name)
		} else if v.First().Code != StaysDetached {
			t.Errorf("%s: a pod is refused for %v", name, v.Reasons)
		}
		if v := (Arbiter{}).Grant(s, s.Ticket(asks.ID), now); v.Allowed() {
			t.Errorf("%s: a ticket gets it", name)
		}
	}
}

// A leader before this process may have granted the ticket: nobody gets the volume at a node until that is
// known.
func TestSharedVolumeIsNotGrantedBesideATicketInDoubt(t *testing.T) {
	now, key := time.Unix(1000, 0), ledger.ClaimKey{Namespace: "s", Name: "data"}
	ticket := func(name string, kind ledger.TicketType, n ledger.NodeName) ledger.Ticket {
		return ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: name}, UID: name, Version: "1", Type: kind, Node: n, Created: 1,
			Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}}
	}
	keeps, asks := ticket("keeps", ledger.TypeSalvage, ledger.Detached), ticket("asks", ledger.TypeManual, "n1")
	node := func(n ledger.NodeName) ledger.Event {
		return ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	}
	for want, facts := range map[ledger.Code][]ledger.Event{
		"":         {keeps, asks},
		NotGranted: {keeps, asks, ledger.TicketInDoubt{ID: keeps.ID, UID: keeps.UID}},
	} {
		l := ledger.New()
		for _, e := range append([]ledger.Event{
			node("n1"), node("n2"),
			ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n1", Limit: 4}}},
			ledger.PersistentVolume{Name: "pv", Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: "h"}, Access: ledger.AccessMany, Claim: key},
			ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true, Access: ledger.AccessMany},
			ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n2", Phase: ledger.PodLive, Created: 1, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
		}, facts...) {
			l.Apply(now, e)
		}
		s := l.Snapshot()
		if v := (Arbiter{}).Queue(s, "n1", now).Grant(s.Ticket(asks.ID)); v.First().Code != want || v.Allowed() != (want == "") {
			t.Errorf("%+v, want %q", v, want)
		}
	}
}
