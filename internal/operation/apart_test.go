// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func (s *scene) heldAt(name string, node ledger.NodeName) {
	s.apply(ledger.HoldSeen{Volume: ledger.VolumeID{Driver: driver, Handle: name}, Hold: ledger.Hold{Version: s.next(), Node: node, State: ledger.HoldHeld}})
}

// No ticket can have its volumes.
func TestGroupAtSeveralNodes(t *testing.T) {
	attach, detach := ledger.Policy{AttachFor: only(ledger.OperationSnapshot)}, ledger.Policy{DetachFor: only(ledger.OperationSnapshot)}
	for name, test := range map[string]struct {
		policy  ledger.Policy
		works   Work
		a, b    ledger.NodeName
		granted bool
		told    string
	}{
		"at two":             {attach, snapshotOf("x", "a", "b"), "n1", "n2", false, "x " + ReasonApart},
		"at one":             {attach, snapshotOf("x", "a", "b"), "n1", "n1", false, ""},
		"one at none":        {attach, snapshotOf("x", "a", "b"), "n1", "", false, ""},
		"one kept detached":  {attach, snapshotOf("x", "a", "b"), "n1", ledger.Detached, false, ""},
		"at two, and it has": {attach, snapshotOf("x", "a", "b"), "n1", "n2", true, ""},
		"to be at none":      {detach, snapshotOf("x", "a", "b"), "n1", "n2", false, ""},
		"no group":           {attach, snapshotOf("x", "a"), "n1", "n2", false, ""},
	} {
		s := newScene(t, test.policy)
		s.heldAt("a", test.a)
		s.heldAt("b", test.b)
		s.works = []Work{test.works}
		s.decide()
		s.tickets[0].Granted, s.tickets[0].Reason, s.tickets[0].Message = test.granted, "HeldElsewhere", "pod db has it"
		plan := s.decide()
		if codes(plan) != test.told || test.told != "" && !strings.Contains(plan.Troubles[0].Message, "(a at n1, b at n2)") {
			t.Errorf("%s: told %+v", name, plan.Troubles)
		}
		s.has("shop/snapshot-uid-x")
	}
}
