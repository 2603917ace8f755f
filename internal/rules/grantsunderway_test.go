// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A shared volume is not granted as detached while its grant may be in flight, nor the reverse.
func TestSharedGrantsUnderWay(t *testing.T) {
	granting := func(k *ledger.Ticket) { k.Reason = "Pending" }
	at := func(n ledger.NodeName) func(string) ledger.Event {
		return func(name string) ledger.Event { return asksAt(name, ledger.TypeManual, n, granting) }
	}
	sent := func(name string) ledger.Event {
		return ledger.GrantSent{ID: ledger.TicketID{Namespace: "shop", Name: name}, UID: name, Version: "1"}
	}
	doubted := func(name string) ledger.Event {
		return ledger.TicketInDoubt{ID: ledger.TicketID{Namespace: "shop", Name: name}, UID: name}
	}
	over := func(name string) ledger.Event {
		return ledger.GrantResolved{ID: ledger.TicketID{Namespace: "shop", Name: name}, UID: name, Version: "1"}
	}
	for name, test := range map[string]struct {
		other ledger.NodeName
		asks  ledger.NodeName
		then  []func(string) ledger.Event
		want  bool
	}{
		"detached, sent at a node":        {"well", ledger.Detached, []func(string) ledger.Event{sent}, false},
		"detached, in doubt at a node":    {"well", ledger.Detached, []func(string) ledger.Event{doubted}, false},
		"detached, asked for at a node":   {"well", ledger.Detached, nil, true},
		"detached, failed at a node":      {"well", ledger.Detached, []func(string) ledger.Event{sent, over}, true},
		"at a node, sent detached":        {ledger.Detached, "well", []func(string) ledger.Event{sent}, false},
		"at a node, in doubt detached":    {ledger.Detached, "well", []func(string) ledger.Event{doubted}, false},
		"at a node, asked for detached":   {ledger.Detached, "well", nil, true},
		"at a node, sent at another node": {"other", "well", []func(string) ledger.Event{sent}, true},
		"detached, sent detached":         {ledger.Detached, ledger.Detached, []func(string) ledger.Event{sent}, true},
	} {
		facts := []ledger.Event{sharedDisk, at(test.other)("m"), asksAt("d", ledger.TypeUpgrade, test.asks)}
		for _, then := range test.then {
			facts = append(facts, then("m"))
		}
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, facts...)
		if verdict := p.Grant(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "d"}), auditTime); verdict.Allowed() != test.want {
			t.Errorf("%s: %v", name, verdict)
		}
	}
}

// A possible grant in flight keeps a volume, in any rank, from a ticket that can't share it.
func TestGrantsUnderWayAtOneNode(t *testing.T) {
	id := func(name string) ledger.TicketID { return ledger.TicketID{Namespace: "shop", Name: name} }
	forOnePod := ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "9", Volume: disk, Access: ledger.AccessPod, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}
	off := func(k *ledger.Ticket) { k.Parameters = "frontend=off" }
	told := func(k *ledger.Ticket) { k.Reason = string(HeldElsewhere) }
	sent, doubted := ledger.GrantSent{ID: id("m"), UID: "m", Version: "1"}, ledger.TicketInDoubt{ID: id("m"), UID: "m"}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"for one pod, it only asks":          {[]ledger.Event{forOnePod, asksAt("m", ledger.TypeManual, "well")}, true},
		"for one pod, in doubt":              {[]ledger.Event{forOnePod, asksAt("m", ledger.TypeManual, "well"), doubted}, false},
		"for one pod, sent":                  {[]ledger.Event{forOnePod, asksAt("m", ledger.TypeManual, "well"), sent}, false},
		"for one pod, in doubt and told":     {[]ledger.Event{forOnePod, asksAt("m", ledger.TypeManual, "well", told), doubted}, false},
		"other parameters, it only asks":     {[]ledger.Event{sharedDisk, asksAt("m", ledger.TypeManual, "well", off)}, true},
		"other parameters, in doubt":         {[]ledger.Event{sharedDisk, asksAt("m", ledger.TypeManual, "well", off), doubted}, false},
		"the same parameters, in doubt":      {[]ledger.Event{sharedDisk, asksAt("m", ledger.TypeManual, "well"), doubted}, true},
		"other parameters, at another node":  {[]ledger.Event{sharedDisk, asksAt("m", ledger.TypeManual, "third", off), doubted}, true},
		"among many, other parameters, sent": {append(crowdAt("well"), sharedDisk, asksAt("m", ledger.TypeManual, "well", off), sent), false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append(test.facts, asksAt("d", ledger.TypeUpgrade, "well"))...)
		if verdict := p.Grant(p.snapshot, p.snapshot.Ticket(id("d")), auditTime); verdict.Allowed() != test.want {
			t.Errorf("%s: %v", name, verdict)
		}
	}
}

// crowdAt exceeds the number of tickets that are checked one by one.
func crowdAt(n ledger.NodeName) []ledger.Event {
	var list []ledger.Event
	for i := range fewUsers + 4 {
		list = append(list, asksAt(fmt.Sprint("z", i), ledger.TypeBackup, n))
	}
	return list
}

func TestExclusiveGrantsUnderWay(t *testing.T) {
	id := ledger.TicketID{Namespace: "shop", Name: "m"}
	told := func(k *ledger.Ticket) { k.Reason = string(HeldElsewhere) }
	for name, test := range map[string]struct {
		changes []func(*ledger.Ticket)
		then    []ledger.Event
		want    bool
	}{
		"it only asks":       {nil, nil, true},
		"sent":               {nil, []ledger.Event{ledger.GrantSent{ID: id, UID: "m", Version: "1"}}, false},
		"told, then sent":    {[]func(*ledger.Ticket){told}, []ledger.Event{ledger.GrantSent{ID: id, UID: "m", Version: "1"}}, false},
		"in doubt":           {nil, []ledger.Event{ledger.TicketInDoubt{ID: id, UID: "m"}}, false},
		"told, and in doubt": {[]func(*ledger.Ticket){told}, []ledger.Event{ledger.TicketInDoubt{ID: id, UID: "m"}}, false},
	} {
		facts := append([]ledger.Event{alive, asksAt("m", ledger.TypeRebuild, "third", test.changes...), asksAt("d", ledger.TypeManual, "well")}, test.then...)
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, facts...)
		if verdict := p.Grant(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "d"}), auditTime); verdict.Allowed() != test.want {
			t.Errorf("%s: %v", name, verdict)
		}
	}
}
