// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func migration(name string, at ledger.NodeName, phase ledger.TicketPhase) ledger.Ticket {
	return ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: name}, UID: name, Version: "1", Type: ledger.TypeLiveMigration, Node: at, Phase: phase, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
}

func migrations(t *testing.T, may bool, hold ledger.Hold, tickets ...ledger.Ticket) (ledger.Snapshot, *ledger.Volume, Need) {
	t.Helper()
	hold.State, hold.Transitions = ledger.HoldHeld, 1
	return concerned(t, "well", "well", hold, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: may})
		for _, n := range []ledger.NodeName{"n2", "n3"} {
			l.Apply(auditTime, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		}
		for _, k := range tickets {
			l.Apply(auditTime, k)
		}
	})
}

// A live migration blocks another to a third node, but neither itself nor requests at its node.
func TestOtherTargets(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	move, other := migration("move", "n2", ledger.TicketGranted), migration("other", "n3", ledger.TicketPending)
	s, _, need := migrations(t, true, ledger.Hold{}, move, other)
	v := s.Volume(id)
	for name, test := range map[string]struct {
		by   ledger.TicketID
		at   ledger.NodeName
		want int
	}{
		"itself":                  {move.ID, "n2", 0},
		"itself, at another node": {move.ID, "n3", 0},
		"another, at its node":    {other.ID, "n2", 0},
		"another, at a third":     {other.ID, "n3", 1},
	} {
		w := evaluation{snapshot: s, request: TicketRequest(s, s.Ticket(test.by)), node: test.at, now: auditTime}
		reasons := w.otherTargets(v, need, HeldElsewhere)
		if len(reasons) != test.want || test.want == 1 && (reasons[0].Node != "n2" || reasons[0].Who.Name != "move") {
			t.Errorf("%s: %+v", name, reasons)
		}
	}
}

func TestHoldNamesMigrations(t *testing.T) {
	named := ledger.Hold{Requesters: []ledger.Requester{{Ticket: true, Namespace: "shop", Name: "named", UID: "named"}}}
	tickets := []ledger.Ticket{migration("granted", "n2", ledger.TicketGranted), migration("named", "n2", ledger.TicketPending), migration("asks", "n3", ledger.TicketPending)}
	for may, want := range map[bool][]string{true: {"granted"}, false: nil} {
		s, v, _ := migrations(t, may, named, tickets...)
		var got []string
		for _, r := range (Arbiter{}).planner(s, v, auditTime).migrations(v.OnNode("well")) {
			got = append(got, r.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("where it may migrate: %t, the hold names %q, want %q", may, got, want)
		}
	}
}

func TestTargetOfAMigration(t *testing.T) {
	named := ledger.Hold{Requesters: []ledger.Requester{{Ticket: true, Namespace: "shop", Name: "named", UID: "named"}}}
	for name, test := range map[string]struct {
		tickets []ledger.Ticket
		at      ledger.NodeName
		want    bool
	}{
		"granted here":                      {[]ledger.Ticket{migration("m", "n2", ledger.TicketGranted)}, "n2", true},
		"granted elsewhere":                 {[]ledger.Ticket{migration("m", "n3", ledger.TicketGranted)}, "n2", false},
		"named here":                        {[]ledger.Ticket{migration("named", "n2", ledger.TicketPending)}, "n2", false},
		"asks here":                         {[]ledger.Ticket{migration("m", "n2", ledger.TicketPending)}, "n2", false},
		"granted here, and named elsewhere": {[]ledger.Ticket{migration("m", "n2", ledger.TicketGranted), migration("named", "n3", ledger.TicketPending)}, "n2", true},
		"granted here, and asks elsewhere":  {[]ledger.Ticket{migration("m", "n2", ledger.TicketGranted), migration("m2", "n3", ledger.TicketPending)}, "n2", true},
		"granted elsewhere, and here":       {[]ledger.Ticket{migration("m2", "n2", ledger.TicketGranted), migration("m3", "n3", ledger.TicketGranted)}, "n3", false},
		"none":                              {nil, "n2", false},
	} {
		s, v, _ := migrations(t, true, named, test.tickets...)
		if got := (evaluation{snapshot: s, request: Request{Pod: "new"}, node: test.at, now: auditTime}).target(v); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestMigrationIsNotInItsOwnWay(t *testing.T) {
	s, v, _ := migrations(t, true, ledger.Hold{}, migration("m", "n2", ledger.TicketGranted))
	own := TicketRequest(s, s.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}))
	for _, n := range []ledger.NodeName{"n2", "n3"} {
		if !(evaluation{snapshot: s, request: own, node: n, now: auditTime}).target(v) {
			t.Errorf("not at %s", n)
		}
	}
}

func TestElsewhereOfAMigration(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	attached := ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true, Attached: true}
	s, _, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld, Transitions: 1}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true})
		l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		l.Apply(auditTime, attached)
		l.Apply(auditTime, migration("m", "n2", ledger.TicketGranted))
		l.Apply(auditTime, migration("asks", "n3", ledger.TicketPending))
	})
	v := s.Volume(id)
	p := Arbiter{}.planner(s, v, auditTime)
	for n, want := range map[ledger.NodeName]int{"well": 0, "n2": 0, "n3": 1} {
		if got := p.elsewhere(n, "well"); len(got) != want {
			t.Errorf("at %s: %+v", n, got)
		}
	}
}
