// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A ticket has thirty seconds. A request by a clock more than a second ahead does not count.
func TestNoticeLeft(t *testing.T) {
	for name, test := range map[string]struct {
		since    int64
		letsGo   bool
		left     time.Duration
		asked    bool
		onNotice bool
		until    int64
	}{
		"not asked":             {0, false, 0, false, false, 0},
		"asked now":             {1000, false, 30 * time.Second, true, true, 1030},
		"asked before":          {990, false, 20 * time.Second, true, true, 1020},
		"a second is left":      {971, false, time.Second, true, true, 1001},
		"nothing is left":       {970, false, 0, false, false, 1000},
		"asked long ago":        {1, false, 0, false, false, 31},
		"a second ahead":        {1001, false, 31 * time.Second, true, true, 1031},
		"two seconds ahead":     {1002, false, 32 * time.Second, false, false, 1032},
		"it has let go":         {1000, true, 30 * time.Second, true, false, 1030},
		"let go, and not asked": {0, true, 0, false, false, 0},
	} {
		k := asksAt("m", ledger.TypeBackup, "well", grantedNow, func(k *ledger.Ticket) {
			k.SatisfiedSince, k.YieldingSince, k.LetsGo = 900, test.since, test.letsGo
		})
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, k)
		is := p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})
		if got := NoticeLeft(is, auditTime); got != test.left {
			t.Errorf("%s: %s are left, want %s", name, got, test.left)
		}
		if got := Asked(is, auditTime); got != test.asked {
			t.Errorf("%s: it is asked: %t", name, got)
		}
		if got := OnNotice(is, auditTime); got != test.onNotice {
			t.Errorf("%s: it has time: %t", name, got)
		}
		if got := yieldsBy(is); got != test.until {
			t.Errorf("%s: until %d, want %d", name, got, test.until)
		}
	}
	if got := yieldsBy(nil); got != 0 {
		t.Errorf("a ticket that is not known is asked to let go until %d", got)
	}
}

func TestMayBeUnlisted(t *testing.T) {
	ticket := ledger.Hold{Requesters: []ledger.Requester{{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}}}
	pod := ledger.Hold{Requesters: []ledger.Requester{{Namespace: "shop", Name: "q", UID: "q"}}}
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		seen   bool
		want   bool
	}{
		"a ticket has it":                   {"well", ticket, []ledger.Event{madeAt("well")}, false, true},
		"a pod has it":                      {"well", pod, []ledger.Event{madeAt("well")}, false, false},
		"a ticket has it elsewhere":         {"dead", ticket, []ledger.Event{madeAt("well")}, false, false},
		"a ticket, and nothing is there":    {"well", ticket, []ledger.Event{nodeAs("well", using)}, false, false},
		"no hold":                           {"well", ticket, []ledger.Event{madeAt("well"), ledger.HoldGone{Volume: disk}}, false, false},
		"it was seen":                       {"well", ledger.Hold{}, []ledger.Event{madeAt("well")}, true, true},
		"it was seen, and is there no more": {"well", ledger.Hold{}, []ledger.Event{nodeAs("well", using)}, true, false},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, append([]ledger.Event{alive}, test.facts...)...)
		place := *p.at("well")
		place.Unlisted = test.seen
		if got := mayBeUnlisted(p.volume, &place); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for want, change := range map[usage]func(*ledger.NodeState){usageNone: func(*ledger.NodeState) {}, usageUnknown: silent} {
		p := plannerOf(t, Arbiter{}, "well", ticket, alive, madeAt("well"), nodeAs("well", change))
		if got := p.evidenceOf(p.snapshot, p.volume, p.at("well"), auditTime).usage; got != want {
			t.Errorf("what the hold says a ticket has: %s, want %s", got, want)
		}
	}
}
