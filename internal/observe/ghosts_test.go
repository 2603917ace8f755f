// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// However long the API server was away, a reservation without a ticket is read for within a minute, and whatever
// fails of one does not pause another.
func TestPausesOfGhosts(t *testing.T) {
	pauses, one, other := ghostPauses(), ledger.TicketID{Namespace: "shop", Name: "u1"}, ledger.TicketID{Namespace: "bank", Name: "u2"}
	for range 1000 {
		if pause := pauses.When(one); pause > longestUnread {
			t.Fatalf("it pauses %s", pause)
		}
	}
	if pause := pauses.When(other); pause != firstUnread {
		t.Errorf("another one pauses %s", pause)
	}
}
