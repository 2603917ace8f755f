// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// What holds an exclusive volume back from a request at node well: a grant elsewhere that may
// be on its way, and that has to be told first where the request ranks before; or that the
// next hold gives it to another node.
func TestHeldBackByWhat(t *testing.T) {
	who := func(uid string) ledger.Requester {
		return ledger.Requester{Ticket: true, Namespace: "shop", Name: uid, UID: uid}
	}
	promised := ledger.Hold{Next: ledger.Promise{Node: "dead", To: who("m")}}
	asks := asksAt("m", ledger.TypeManual, "dead", func(k *ledger.Ticket) { k.Created = 5 })
	at := func(created int64, kind ledger.TicketType) Request {
		return Request{Type: kind, Created: created, Who: who("r"), Ticket: ledger.TicketID{Namespace: "shop", Name: "r"}}
	}
	mayMigrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	migrate := []ledger.Event{ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}, madeAt("dead"), dataAt("q", "dead", ledger.PodLive), migration("r", "well", ledger.TicketGranted)}
	for name, test := range map[string]struct {
		heldAt  ledger.NodeName
		hold    ledger.Hold
		request Request
		facts   []ledger.Event
		want    Reason // zero: nothing does
	}{
		"it is here":                       {"well", ledger.Hold{}, at(1, ledger.TypeManual), []ledger.Event{dataAt("q", "well", ledger.PodLive)}, Reason{}},
		"promised elsewhere, ranks before": {"well", promised, at(1, ledger.TypeManual), []ledger.Event{asks}, Reason{Code: NotGranted}},
		"to be salvaged, ranks before":     {"well", promised, at(1, ledger.TypeSalvage), []ledger.Event{asks}, Reason{Code: NotGranted}},
		"promised elsewhere, ranks after":  {"well", promised, at(9, ledger.TypeManual), []ledger.Event{asks}, Reason{Code: HeldElsewhere, Node: "dead", Who: who("m"), Detail: onlyPromised}},
		"another there is promised it":     {"well", ledger.Hold{Next: ledger.Promise{Node: "dead", To: who("o")}, Requesters: []ledger.Requester{who("m")}}, at(9, ledger.TypeManual), []ledger.Event{asks, dataAt("q", "well", ledger.PodLive)}, Reason{}},
		"promised to it at a third node":   {"well", ledger.Hold{Next: ledger.Promise{Node: "third", To: who("m")}}, at(9, ledger.TypeManual), []ledger.Event{asks, dataAt("q", "well", ledger.PodLive)}, Reason{}},
		"somebody has it":                  {"dead", ledger.Hold{}, at(1, ledger.TypeManual), []ledger.Event{madeAt("dead"), dataAt("q", "dead", ledger.PodLive)}, Reason{Code: HeldElsewhere, Node: "dead", Who: ledger.Requester{Namespace: "shop", Name: "q", UID: "q"}}},
		"it goes on to a third node":       {"dead", ledger.Hold{}, at(1, ledger.TypeManual), []ledger.Event{madeAt("dead"), dataAt("q", "third", ledger.PodLive)}, Reason{Code: HeldElsewhere, Node: "third", Who: ledger.Requester{Namespace: "shop", Name: "q", UID: "q"}, Detail: onlyPromised}},
		"nobody has it, it is elsewhere":   {"dead", ledger.Hold{}, at(1, ledger.TypeManual), []ledger.Event{madeAt("dead")}, Reason{Code: HeldElsewhere, Node: "dead"}},
		"it may be about to migrate":       {"third", ledger.Hold{Requesters: []ledger.Requester{who("m")}}, at(1, ledger.TypeManual), []ledger.Event{mayMigrate, migration("m", "dead", ledger.TicketPending)}, Reason{Code: NotGranted}},
		"it may, and has it here":          {"well", ledger.Hold{Requesters: []ledger.Requester{who("m")}}, at(1, ledger.TypeManual), []ledger.Event{mayMigrate, migration("m", "dead", ledger.TicketPending), dataAt("q", "well", ledger.PodLive)}, Reason{}},
		"another one may":                  {"third", ledger.Hold{Requesters: []ledger.Requester{who("o")}}, at(1, ledger.TypeManual), []ledger.Event{mayMigrate, migration("m", "dead", ledger.TicketPending), dataAt("q", "well", ledger.PodLive)}, Reason{}},
		"it migrates here":                 {"dead", ledger.Hold{}, at(1, ledger.TypeLiveMigration), migrate, Reason{}},
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
