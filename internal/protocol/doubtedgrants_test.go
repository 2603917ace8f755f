// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Its refused status can't tell it anything: the hold gives the node, so it keeps no pod away.
func TestTicketInDoubtBesideAHolder(t *testing.T) {
	p := newPlayer(node("1"), node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n2", "n2" }),
		ledger.NodeDrivers{Node: "n2", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 4, NodeID: "n2"}}},
		pod("p", "n2", "a"), pod("q", "", "a"), ledger.Complete{})
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "1", Node: "n2", NodeUID: "n2", State: ledger.HoldHeld, Transitions: 1}})
	x, q := ticket("x", "n1", ledger.TypeBackup, "a"), ticket("q", "n2", ledger.TypeManual, "a")
	p.ledger.Apply(p.now, x)
	p.ledger.Apply(p.now, q)
	p.ledger.Apply(p.now, ledger.TicketInDoubt{ID: x.ID, UID: x.UID})
	if d := decided(p, q.ID); d.Ruling != Grant {
		t.Errorf("ruling %d: %s", d.Ruling, d.Verdict.First().Message())
	}
}
