// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/rules"
)

// The advice for a ticket's maker is possible: a ticket that names its node can't move, and a ticket in the
// way has no workload to scale down.
func TestAdviceForTickets(t *testing.T) {
	w := NewWorld(Objects{}, time.Unix(0, 0))
	const ends = "End it: kubectl moorage ticket end other -n shop"
	for name, test := range map[string]struct {
		ticket    Ticket
		wants     string
		wantsNone string
	}{
		"a ticket has the volume": {Ticket{Detached: true, Reasons: []Reason{{Code: string(rules.HeldElsewhere), Do: ends,
			Holder: &Requester{Kind: string(v1alpha1.TicketKindVolumeTicket), Namespace: "shop", Name: "other"}}}}, ends, "scaling"},
		"a pod has it": {Ticket{Detached: true, Reasons: []Reason{{Code: string(rules.HeldElsewhere),
			Holder: &Requester{Kind: string(v1alpha1.TicketKindPod), Namespace: "shop", Name: "db"}}}}, "scaling its workload down", "ticket end"},
		"its node is full": {Ticket{Node: "worker-1", Reasons: []Reason{{Code: string(rules.NoFreeSlot), Changes: "another node"}}},
			"kubectl moorage explain node worker-1 -o wide", "spread"},
		"Moorage chooses its node": {Ticket{Node: "worker-1", Wherever: true, Reasons: []Reason{{Code: string(rules.NoFreeSlot), Do: "Add nodes"}}}, "Add nodes", "ticket end"},
		"its node does not exist":  {Ticket{Node: "wroker-1", Reasons: []Reason{{Code: string(rules.NodeMissing)}}}, "kubectl get nodes", "gone for good"},
	} {
		test.ticket.Namespace, test.ticket.Name = "shop", "mine"
		w.adviseByHand(&test.ticket)
		r := test.ticket.Reasons[0]
		if !strings.Contains(r.Do, test.wants) || strings.Contains(r.Do, test.wantsNone) || strings.Contains(r.Changes, "another node") {
			t.Errorf("%s: do %q, changes %q", name, r.Do, r.Changes)
		}
	}
}
