// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A grant is judged by the highest limit that the node has had; where nothing lies
// between a decision and its write, by the one that stands.
func TestLimitsThatStand(t *testing.T) {
	for _, exact := range []bool{false, true} {
		w := New()
		w.Judge.Exact = exact
		for _, limit := range []int32{2, 0} {
			w.Put(ledger.NodeDrivers{Node: "w1", Drivers: []ledger.DriverOnNode{{Name: disk.Driver, NodeID: "w1#1", Limit: limit}}})
		}
		w.Put(ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: disk, Access: ledger.AccessMany})
		id := ledger.TicketID{Namespace: "ns", Name: "t"}
		w.Put(ledger.Ticket{ID: id, UID: "t", Type: ledger.TypeManual, Node: "w1", Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}})
		w.Serve(Request{Do: DecideTicket, Key: id.String(), Phase: ledger.TicketGranted})
		if found := len(w.Judge.Faults) > 0; found != exact {
			t.Errorf("exact %t: %v", exact, w.Judge.Faults)
		}
	}
}

// A hold that somebody has deleted may be made again as it was; with the same
// transitions for another node, or with fewer, it may not.
func TestHoldMadeAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		hold ledger.Hold
		bad  bool
	}{
		{"as it was", ledger.Hold{Node: "w1", Transitions: 2}, false},
		{"for another node", ledger.Hold{Node: "w2", Transitions: 2}, true},
		{"for another node, counted", ledger.Hold{Node: "w2", Transitions: 3}, false},
		{"counted anew", ledger.Hold{Node: "w1", Transitions: 1}, true},
	} {
		w := New()
		w.Put(ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: disk, Access: ledger.AccessNode})
		w.Put(ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Node: "w1", Transitions: 2}})
		w.Drop(Holds, disk.String())
		w.Put(ledger.HoldSeen{Volume: disk, Hold: test.hold})
		if found := len(w.Judge.Faults) > 0; found != test.bad {
			t.Errorf("%s: %v", test.name, w.Judge.Faults)
		}
	}
}
