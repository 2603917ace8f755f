// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// What has changed wakes all that it matters to, and no more.
func TestWake(t *testing.T) {
	waits, own := ticket("w", "n1", ledger.TypePod, "a"), ticket("b", "n1", ledger.TypePod, "a")
	manual := ticket("m", "n2", ledger.TypeManual, "a")
	s := facts(waits, own, manual, pod("b", "n1", "a"), pod("c", "n1", "c"), ticket("c", "n1", ledger.TypePod, "c")).Snapshot()
	look := Wake(ledger.Touched{Volumes: []ledger.VolumeID{disk}, Nodes: []ledger.NodeName{"n1", "n9"}}, s)
	if !slices.Equal(look.Volumes, []ledger.VolumeID{disk}) || !slices.Equal(look.Nodes, []ledger.NodeName{"n1"}) {
		t.Errorf("woken: %+v", look)
	}
	for _, id := range []ledger.TicketID{waits.ID, own.ID, manual.ID} {
		if !slices.Contains(look.Tickets, id) {
			t.Errorf("ticket %s is not woken", id)
		}
	}
	if !slices.Contains(look.Pods, "uid-w") || !slices.Contains(look.Pods, "uid-b") || slices.Contains(look.Pods, "uid-c") {
		t.Errorf("woken are the pods %v", look.Pods)
	}
	if look := Wake(ledger.Touched{Tickets: []ledger.TicketID{waits.ID}}, s); !slices.Equal(look.Pods, []string{"uid-w"}) || !slices.Equal(look.Tickets, []ledger.TicketID{waits.ID}) {
		t.Errorf("woken by a ticket: %+v", look)
	}
}
