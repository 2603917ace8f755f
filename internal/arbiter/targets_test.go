// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A live migration is in the way of another one to a third node: not of itself, wherever
// it asks, nor of who asks at its node.
func TestOtherTargets(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	ticket := func(name string, at ledger.NodeName, phase ledger.TicketPhase) ledger.Ticket {
		return ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: name}, UID: name, Version: "1", Type: ledger.TypeLiveMigration, Node: at, Phase: phase, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	}
	move, other := ticket("move", "n2", ledger.TicketGranted), ticket("other", "n3", ledger.TicketPending)
	s, _, need := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld, Transitions: 1}, func(l *ledger.Ledger) {
		for _, e := range []ledger.Event{
			ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true},
			ledger.NodeState{Name: "n2", UID: "n2", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
			ledger.NodeState{Name: "n3", UID: "n3", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
			move, other,
		} {
			l.Apply(auditTime, e)
		}
	})
	v := s.Volume(id)
	for name, test := range map[string]struct {
		by   ledger.TicketID
		at   ledger.NodeName
		want int
	}{
		"itself":                  {move.ID, "n2", 0},
		"itself, at another node": {move.ID, "n3", 0},
		"another, at its node":    {other.ID, "n2", 0},
		"another, at a third":     {other.ID, "n3", 1},
	} {
		w := view{snapshot: s, request: TicketRequest(s, s.Ticket(test.by)), node: test.at, now: auditTime}
		reasons := w.otherTargets(v, need, HeldElsewhere)
		if len(reasons) != test.want || test.want == 1 && (reasons[0].Node != "n2" || reasons[0].Who.Name != "move") {
			t.Errorf("%s: %+v", name, reasons)
		}
	}
}
