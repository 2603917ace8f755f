// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestDistinctNeeds(t *testing.T) {
	for name, test := range map[string]struct{ is, want []string }{
		"none":            {nil, nil},
		"one":             {[]string{"d/1"}, []string{"d/1"}},
		"the same twice":  {[]string{"d/1", "d/1"}, []string{"d/1"}},
		"two":             {[]string{"d/1", "d/2"}, []string{"d/1", "d/2"}},
		"the same later":  {[]string{"d/1", "d/2", "e/1", "d/2", "d/1"}, []string{"d/1", "d/2", "e/1"}},
		"of none, thrice": {[]string{"-", "d/1", "-", "-"}, []string{"-", "d/1", "-", "-"}},
	} {
		var needs []Need
		for _, v := range test.is {
			if v == "-" {
				needs = append(needs, Need{Name: v})
			} else {
				needs = append(needs, needing(v).Needs...)
			}
		}
		var got []string
		for _, n := range distinct(needs) {
			got = append(got, n.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestNeedsOfARequest(t *testing.T) {
	claim := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "2", PersistentVolume: "pv", Bound: true, Access: ledger.AccessPod}
	pod := ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Volumes: []ledger.PodVolume{
		{Name: "v", Claim: "data"}, {Name: "again", Claim: "data"}, {Name: "none"}, {Name: "inline", Inline: ledger.VolumeID{Driver: "d", Handle: "i"}, Access: ledger.AccessMany},
	}}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, claim, pod,
		ledger.PersistentVolume{Name: "inline", Version: "1", Volume: ledger.VolumeID{Driver: "d", Handle: "i"}, Access: ledger.AccessMany})
	volumes := []ledger.TicketVolume{{Claim: "data"}, {Claim: "data"}, {PersistentVolume: "inline"}}
	for name, test := range map[string]struct {
		r     Request
		bound bool
	}{
		"a pod":          {PodRequest(p.snapshot, p.snapshot.Pod("p")), false},
		"a ticket":       {TicketRequest(p.snapshot, &ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, Type: ledger.TypeManual, Volumes: volumes}), true},
		"one to salvage": {TicketRequest(p.snapshot, &ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, Type: ledger.TypeSalvage, Volumes: volumes}), true},
	} {
		if len(test.r.Needs) != 2 {
			t.Errorf("%s needs %+v", name, test.r.Needs)
			continue
		}
		data, inline := test.r.Needs[0], test.r.Needs[1]
		if data.Name != "data" || data.Volume != disk || data.Claim == nil || data.Access != ledger.AccessPod || data.Bound != test.bound {
			t.Errorf("%s needs of the claim %+v", name, data)
		}
		if inline.Name != "inline" || inline.Volume.Handle != "i" || inline.Claim != nil || name == "a pod" && inline.Access != ledger.AccessMany {
			t.Errorf("%s needs of its own %+v", name, inline)
		}
		who := ledger.Requester{Namespace: "shop", Name: "db", UID: "p"}
		if test.bound {
			who = ledger.Requester{Ticket: true, Namespace: "shop", Name: "m"}
		}
		if test.r.Who != who {
			t.Errorf("%s asks as %+v", name, test.r.Who)
		}
	}
}

// Ten seconds, doubled with each interruption, up to five minutes.
func TestPauseLeft(t *testing.T) {
	outranked := func(times int64) ledger.Ticket {
		return ledger.Ticket{Type: ledger.TypeBackup, Phase: ledger.TicketPending, Reason: string(Outranked), Interruptions: times}
	}
	granted, other := outranked(3), outranked(3)
	granted.Phase, other.Reason = ledger.TicketGranted, string(HeldElsewhere)
	for name, test := range map[string]struct {
		ticket ledger.Ticket
		after  time.Duration
		want   time.Duration
	}{
		"it had no grant":           {outranked(0), 0, 0},
		"once":                      {outranked(1), 0, 10 * time.Second},
		"once, a while ago":         {outranked(1), 4 * time.Second, 6 * time.Second},
		"once, and it is over":      {outranked(1), 10 * time.Second, 0},
		"once, long ago":            {outranked(1), time.Hour, 0},
		"twice":                     {outranked(2), 0, 20 * time.Second},
		"three times":               {outranked(3), 0, 40 * time.Second},
		"five times":                {outranked(5), 0, 160 * time.Second},
		"six times":                 {outranked(6), 0, 5 * time.Minute},
		"over and over":             {outranked(1000), time.Minute, 4 * time.Minute},
		"it was granted since":      {granted, 0, 0},
		"it was told since of more": {other, 0, 0},
	} {
		test.ticket.ID, test.ticket.UID, test.ticket.Version = ledger.TicketID{Namespace: "shop", Name: "m"}, "m", "1"
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.ticket)
		if got := PauseLeft(p.snapshot, p.snapshot.Ticket(test.ticket.ID), auditTime.Add(test.after)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
