// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Pauses grow until the ticket changes or a write succeeds. Old facts cause no pause.
func TestTicketPauses(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	whole := func(d time.Duration) time.Duration { return d }
	k := &ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "u", Version: "1"}
	changed, another := *k, *k
	changed.Version, another.UID = "2", "v"
	var p TicketPauses
	if p.Left(k, at) != 0 {
		t.Error("a ticket pauses that was never tried")
	}
	for i, want := range []time.Duration{firstFailed, 2 * firstFailed, 4 * firstFailed} {
		p.End(k, Failed, whole, at)
		if got := p.Left(k, at); got != want {
			t.Errorf("failure %d: pauses %s, want %s", i+1, got, want)
		}
	}
	if p.Left(k, at.Add(4*firstFailed)) != 0 || p.Left(&changed, at) != 0 || p.Left(&another, at) != 0 {
		t.Error("it pauses when the time is over, or another version, or another ticket")
	}
	if p.End(&changed, Failed, whole, at); p.Left(&changed, at) != 8*firstFailed {
		t.Errorf("a new version begins anew: %s", p.Left(&changed, at))
	}
	if p.End(&another, Failed, whole, at); p.Left(&another, at) != firstFailed {
		t.Errorf("another ticket of the name goes on: %s", p.Left(&another, at))
	}
	for _, end := range []End{Finished, Stale} {
		p.End(k, Failed, whole, at)
		if p.End(k, end, whole, at); p.Left(k, at) != 0 || p.Len() != 0 {
			t.Errorf("it pauses after it %s", end)
		}
	}
	p.End(k, Failed, whole, at)
	other := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "o"}, UID: "o", Version: "1"}
	if p.End(&other, Failed, whole, at.Add(time.Hour)); p.Len() != 1 {
		t.Errorf("%d pauses are kept", p.Len())
	}
}

func TestRoundLeavesAlone(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := ledger.New()
	l.Apply(now, ledger.NodeState{Name: "n1", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	for _, name := range []string{"a", "b"} {
		l.Apply(now, ledger.Ticket{
			ID: ledger.TicketID{Namespace: "shop", Name: name}, UID: name, Version: "1", Type: ledger.TypeManual, Node: "n1",
			Volumes: []ledger.TicketVolume{{Claim: "data"}},
		})
	}
	alone := func(k *ledger.Ticket) time.Duration {
		if k.ID.Name == "a" {
			return time.Minute
		}
		return 0
	}
	if list := Round(rules.Arbiter{}.Queue(l.Snapshot(), "n1", now), l.Snapshot(), now, nil, nil); len(list) != 2 {
		t.Fatalf("of 2 tickets %d are decided on", len(list))
	}
	if list := Round(rules.Arbiter{}.Queue(l.Snapshot(), "n1", now), l.Snapshot(), now, alone, nil); len(list) != 1 || list[0].Ticket.ID.Name != "b" {
		t.Errorf("decided on: %v", list)
	}
	if got := Resumes(l.Snapshot(), "n1", now, alone); got != time.Minute {
		t.Errorf("looks again after %s", got)
	}
}
