// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A ticket that yields is not granted what it would lose at once: an exclusive volume that has a hold, to somebody at
// another node; and any but an exclusive one without a hold, to who has it attached with other parameters at its node.
func TestOutrankedInAQueue(t *testing.T) {
	there, here := dataAt("q", "dead", ledger.PodLive), dataAt("q", "well", ledger.PodLive)
	noHold := ledger.HoldGone{Volume: disk}
	plain := func(*ledger.Ticket) {}
	off := func(k *ledger.Ticket) { k.Parameters = "frontend=off" }
	for name, test := range map[string]struct {
		kind   ledger.TicketType
		change func(*ledger.Ticket)
		facts  []ledger.Event
		want   ledger.NodeName // empty: it is not outranked
	}{
		"nobody has it":                      {ledger.TypeBackup, plain, nil, ""},
		"a pod elsewhere":                    {ledger.TypeBackup, plain, []ledger.Event{there}, "dead"},
		"a pod elsewhere, it does not yield": {ledger.TypeManual, plain, []ledger.Event{there}, ""},
		"a pod elsewhere, without a hold":    {ledger.TypeBackup, plain, []ledger.Event{there, noHold}, ""},
		"a pod elsewhere, shared":            {ledger.TypeBackup, plain, []ledger.Event{there, sharedDisk}, ""},
		"a pod elsewhere, attached by none":  {ledger.TypeBackup, plain, []ledger.Event{there, noAttach}, ""},
		"a pod here":                         {ledger.TypeBackup, plain, []ledger.Event{here}, ""},
		"a pod here, otherwise":              {ledger.TypeBackup, off, []ledger.Event{here}, "well"},
		"otherwise, shared, without a hold":  {ledger.TypeBackup, off, []ledger.Event{here, sharedDisk, noHold}, "well"},
		"otherwise, without a hold":          {ledger.TypeBackup, off, []ledger.Event{here, noHold}, ""},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{alive, asksAt("m", test.kind, "well", test.change)}, test.facts...)...)
		k := p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})
		r := TicketRequest(p.snapshot, k)
		r.Needs = append([]Need{{Name: "none", Volume: ledger.VolumeID{Driver: "d", Handle: "none"}}}, r.Needs...) // one that nobody knows
		got := Arbiter{}.Queue(p.snapshot, "well", auditTime).outranked(k, r)
		if len(got) > 0 != (test.want != "") {
			t.Errorf("%s: %+v", name, got)
		}
		if len(got) > 0 && (got[0].Code != Outranked || got[0].Node != test.want || got[0].Volume != disk || got[0].Claim != "data" || got[0].Who.UID != "q") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A ticket yields also to one whose grant may be on its way, since the hold as written names it: not to one that only
// asks, nor once that one was told to wait.
func TestOutrankedByWhoIsNamed(t *testing.T) {
	next := func(uid string) ledger.Hold {
		return ledger.Hold{Next: ledger.Promise{Node: "dead", To: ledger.Requester{Ticket: true, Namespace: "shop", Name: uid, UID: uid}}}
	}
	told := func(k *ledger.Ticket) { k.Reason = string(HeldElsewhere) }
	plain := func(*ledger.Ticket) {}
	for name, test := range map[string]struct {
		hold   ledger.Hold
		kind   ledger.TicketType
		change func(*ledger.Ticket)
		want   bool
	}{
		"it is next":               {next("a"), ledger.TypeManual, plain, true},
		"another is next":          {next("o"), ledger.TypeManual, plain, false},
		"nobody is next":           {ledger.Hold{}, ledger.TypeManual, plain, false},
		"it is next, and was told": {next("a"), ledger.TypeManual, told, false},
		"it is next, and yields":   {next("a"), ledger.TypeBackup, plain, false},
		"it is listed":             {ledger.Hold{Requesters: []ledger.Requester{{UID: "a"}}}, ledger.TypeManual, plain, true},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, alive, asksAt("m", ledger.TypeBackup, "well", grantedNow), asksAt("a", test.kind, "dead", test.change))
		at, who := p.firstOutranker(ledger.User{Ticket: ledger.TicketID{Namespace: "shop", Name: "m"}}, "well")
		if (at == "dead") != test.want || (who.UID == "a") != test.want {
			t.Errorf("%s: %q at %q", name, who.UID, at)
		}
	}
}

// Whose grant may be on its way: of a pending ticket that is not gone, which this process has sent, or which a leader
// before may have sent, until the ticket is told why it waits.
func TestMayBeGranted(t *testing.T) {
	told := string(HeldElsewhere)
	for name, test := range map[string]struct {
		ticket *ledger.Ticket
		want   bool
	}{
		"nobody":               {nil, false},
		"it only asks":         {&ledger.Ticket{Type: ledger.TypeManual, Phase: ledger.TicketPending}, false},
		"sent":                 {&ledger.Ticket{Type: ledger.TypeManual, Phase: ledger.TicketPending, Granting: true}, true},
		"sent, and told":       {&ledger.Ticket{Type: ledger.TypeManual, Phase: ledger.TicketPending, Granting: true, Reason: told}, true},
		"sent, and granted":    {&ledger.Ticket{Type: ledger.TypeManual, Phase: ledger.TicketGranted, Granting: true}, false},
		"in doubt":             {&ledger.Ticket{Type: ledger.TypeManual, Phase: ledger.TicketPending, InDoubt: true}, true},
		"in doubt, and told":   {&ledger.Ticket{Type: ledger.TypeManual, Phase: ledger.TicketPending, InDoubt: true, Reason: told}, false},
		"in doubt, sent, told": {&ledger.Ticket{Type: ledger.TypeManual, Phase: ledger.TicketPending, InDoubt: true, Granting: true, Reason: told}, true},
	} {
		if got := mayBeGranted(test.ticket); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Which grant that may be on its way would not be true beside another one: of an exclusive volume one that this process
// has sent to another node before the hold names it; of a shared one only what keeps it detached, or is kept from it.
func TestGrantUnderWay(t *testing.T) {
	id := ledger.TicketID{Namespace: "shop", Name: "m"}
	sent, doubted := ledger.GrantSent{ID: id, UID: "m", Version: "1"}, ledger.TicketInDoubt{ID: id, UID: "m"}
	named := ledger.Hold{Requesters: []ledger.Requester{{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}}}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		other ledger.NodeName
		asks  ledger.NodeName
		then  []ledger.Event
		want  bool
	}{
		"it only asks":                {ledger.Hold{}, "third", "well", nil, false},
		"sent":                        {ledger.Hold{}, "third", "well", []ledger.Event{sent}, true},
		"sent to the same node":       {ledger.Hold{}, "well", "well", []ledger.Event{sent}, false},
		"sent, and the hold names it": {named, "third", "well", []ledger.Event{sent}, false},
		"in doubt":                    {ledger.Hold{}, "third", "well", []ledger.Event{doubted}, true},
		"sent, to be detached":        {ledger.Hold{}, ledger.Detached, "well", []ledger.Event{sent}, true},
		"shared, sent":                {ledger.Hold{}, "third", "well", []ledger.Event{sharedDisk, sent}, false},
		"shared, sent detached":       {ledger.Hold{}, ledger.Detached, "well", []ledger.Event{sharedDisk, sent}, true},
		"shared, in doubt detached":   {ledger.Hold{}, ledger.Detached, "well", []ledger.Event{sharedDisk, doubted}, true},
		"shared, this one detached":   {ledger.Hold{}, "third", ledger.Detached, []ledger.Event{sharedDisk, sent}, true},
		"shared, both are detached":   {ledger.Hold{}, ledger.Detached, ledger.Detached, []ledger.Event{sharedDisk, sent}, false},
		"shared, it only asks":        {ledger.Hold{}, ledger.Detached, "well", []ledger.Event{sharedDisk}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", test.hold, append([]ledger.Event{alive, asksAt("m", ledger.TypeManual, test.other)}, test.then...)...)
		got := p.grantUnderWay(test.asks, ledger.AccessNode)
		if (got != nil) != test.want || got != nil && got.ID != id {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
