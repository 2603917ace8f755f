// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

// A pending ticket is in doubt until it is seen with a higher epoch, decided, or
// another object: not by any other change.
func TestTicketInDoubt(t *testing.T) {
	now, id := time.Unix(1000, 0), TicketID{"s", "t"}
	first := Ticket{ID: id, UID: "u", Version: "1", Node: "n", Epoch: 3}
	for name, test := range map[string]struct {
		then Ticket
		want bool
	}{
		"another change":   {Ticket{ID: id, UID: "u", Version: "2", Node: "n", Epoch: 3}, true},
		"a higher epoch":   {Ticket{ID: id, UID: "u", Version: "2", Node: "n", Epoch: 4}, false},
		"granted":          {Ticket{ID: id, UID: "u", Version: "2", Node: "n", Epoch: 3, Phase: TicketGranted}, false},
		"another object":   {Ticket{ID: id, UID: "v", Version: "2", Node: "n"}, false},
		"an older version": {Ticket{ID: id, UID: "u", Version: "1", Node: "n", Epoch: 4}, true},
	} {
		l := New()
		l.Apply(now, first)
		if touched := l.Apply(now, TicketInDoubt{ID: id, UID: "other"}); len(touched.Tickets) > 0 || l.Snapshot().Ticket(id).InDoubt {
			t.Errorf("%s: another object's ticket is in doubt", name)
		}
		if touched := l.Apply(now, TicketInDoubt{ID: id, UID: "u"}); len(touched.Tickets) != 1 || !l.Snapshot().Ticket(id).InDoubt {
			t.Fatalf("%s: it is not in doubt", name)
		}
		l.Apply(now, test.then)
		if got := l.Snapshot().Ticket(id).InDoubt; got != test.want {
			t.Errorf("%s: in doubt: %t", name, got)
		}
	}
	l := New()
	first.Phase = TicketGranted
	l.Apply(now, first)
	l.Apply(now, TicketInDoubt{ID: id, UID: "u"})
	if l.Snapshot().Ticket(id).InDoubt {
		t.Error("a granted ticket is in doubt")
	}
}
