// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A ghost's pod is read, and found unbound. Before the answer is there, the
// pod's scheduler has written another ticket, of the same name: that one must
// not end with the ghost.
func TestReleaseIsOfOneTicketOnly(t *testing.T) {
	now := time.Unix(1, 0)
	id := ledger.TicketID{Namespace: "ns", Name: "p"}
	ticket := func(uid, version string) ledger.Ticket {
		return ledger.Ticket{ID: id, UID: uid, Version: version, Type: ledger.TypePod, Node: "n1", Pod: "p"}
	}
	l := ledger.New()
	l.Apply(now, ledger.Pod{UID: "p", Namespace: "ns", Name: "p", Version: "1"})
	l.Apply(now, ticket("first", "2"))
	l.Apply(now, ledger.TicketGone{ID: id})
	if k := l.Snapshot().Ticket(id); k == nil || !k.Ghost {
		t.Fatalf("no ghost is left: %v", k)
	}
	l.Apply(now, ticket("second", "3"))
	l.Apply(now, ledger.TicketReleased{ID: id, UID: "first"})
	if k := l.Snapshot().Ticket(id); k == nil || k.UID != "second" || k.Ghost {
		t.Errorf("the second ticket is not counted: %v", k)
	}
	l.Apply(now, ledger.TicketReleased{ID: id, UID: "second"})
	if k := l.Snapshot().Ticket(id); k != nil {
		t.Errorf("the second ticket still counts: %v", k)
	}
}
