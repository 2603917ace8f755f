// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A yielding ticket is not granted a volume that it would lose at once.
func TestOutrankedInAQueue(t *testing.T) {
	there, here := dataAt("q", "dead", ledger.PodLive), dataAt("q", "well", ledger.PodLive)
	noHold := ledger.HoldGone{Volume: disk}
	plain := func(*ledger.Ticket) {}
	off := func(k *ledger.Ticket) { k.Parameters = "frontend=off" }
	for name, test := range map[string]struct {
		kind   ledger.TicketType
		change func(*ledger.Ticket)
		facts  []ledger.Event
		want   ledger.NodeName // empty: not outranked
	}{
		"nobody has it":                      {ledger.TypeBackup, plain, nil, ""},
		"a pod elsewhere":                    {ledger.TypeBackup, plain, []ledger.Event{there}, "dead"},
		"a pod elsewhere, it does not yield": {ledger.TypeManual, plain, []ledger.Event{there}, ""},
		"a pod elsewhere, without a hold":    {ledger.TypeBackup, plain, []ledger.Event{there, noHold}, "dead"},
		"a pod elsewhere, shared":            {ledger.TypeBackup, plain, []ledger.Event{there, sharedDisk}, ""},
		"a pod elsewhere, attached by none":  {ledger.TypeBackup, plain, []ledger.Event{there, noAttach}, ""},
		"a pod here":                         {ledger.TypeBackup, plain, []ledger.Event{here}, ""},
		"a pod here, otherwise":              {ledger.TypeBackup, off, []ledger.Event{here}, "well"},
		"otherwise, shared, without a hold":  {ledger.TypeBackup, off, []ledger.Event{here, sharedDisk, noHold}, "well"},
		"otherwise, without a hold":          {ledger.TypeBackup, off, []ledger.Event{here, noHold}, "well"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{alive, asksAt("m", test.kind, "well", test.change)}, test.facts...)...)
		k := p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})
		r := TicketRequest(p.snapshot, k)
		r.Needs = append([]Need{{Name: "none", Volume: ledger.VolumeID{Driver: "d", Handle: "none"}}}, r.Needs...) // an unknown volume
		got := Arbiter{}.Queue(p.snapshot, "well", auditTime).outranked(k, r)
		if len(got) > 0 != (test.want != "") {
			t.Errorf("%s: %+v", name, got)
		}
		if len(got) > 0 && (got[0].Code != Outranked || got[0].Node != test.want || got[0].Volume != disk || got[0].Claim != "data" || got[0].Who.UID != "q") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
