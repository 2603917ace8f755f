// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A ticket asks for a shared volume to be detached, or may have the grant, and no hold says so yet. Neither
// a pod nor a later ticket gets the volume at a node.
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
