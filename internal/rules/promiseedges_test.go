// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A planned hold for another node keeps an exclusive volume back.
func TestHeldBackByWhat(t *testing.T) {
	who := func(uid string) ledger.Requester {
		return ledger.Requester{Ticket: true, Namespace: "shop", Name: uid, UID: uid}
	}
	at := func(created int64, kind ledger.TicketType) Request {
		return Request{Type: kind, Created: created, Who: who("r"), Ticket: ledger.TicketID{Namespace: "shop", Name: "r"}}
	}
	migrate := []ledger.Event{ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}, madeAt("dead"), dataAt("q", "dead", ledger.PodLive), migration("r", "well", ledger.TicketGranted)}
	for name, test := range map[string]struct {
		heldAt  ledger.NodeName
		hold    ledger.Hold
		request Request
		facts   []ledger.Event
		want    Reason // zero: nothing does
	}{
		"it is here":                     {"well", ledger.Hold{}, at(1, ledger.TypeManual), []ledger.Event{dataAt("q", "well", ledger.PodLive)}, Reason{}},
		"somebody has it":                {"dead", ledger.Hold{}, at(1, ledger.TypeManual), []ledger.Event{madeAt("dead"), dataAt("q", "dead", ledger.PodLive)}, Reason{Code: HeldElsewhere, Node: "dead", Who: ledger.Requester{Namespace: "shop", Name: "q", UID: "q"}}},
		"it goes on to a third node":     {"dead", ledger.Hold{}, at(1, ledger.TypeManual), []ledger.Event{madeAt("dead"), dataAt("q", "third", ledger.PodLive)}, Reason{Code: HeldElsewhere, Node: "third", Who: ledger.Requester{Namespace: "shop", Name: "q", UID: "q"}, Detail: onlyPromised}},
		"nobody has it, it is elsewhere": {"dead", ledger.Hold{}, at(1, ledger.TypeManual), []ledger.Event{madeAt("dead")}, Reason{Code: HeldElsewhere, Node: "dead"}},
		"it migrates here":               {"dead", ledger.Hold{}, at(1, ledger.TypeLiveMigration), migrate, Reason{}},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, append([]ledger.Event{alive}, test.facts...)...)
		got, kept := p.heldBack(test.request, "well", "data")
		want := test.want
		if want != (Reason{}) {
			want.Volume, want.Claim = disk, "data"
		}
		if got != want || kept != (want != Reason{}) {
			t.Errorf("%s: %t, %+v\nwant %+v", name, kept, got, want)
		}
	}
}
