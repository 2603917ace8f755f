// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestArrives(t *testing.T) {
	here := dataAt("q", "well", ledger.PodLive)
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"a pod here":                  {[]ledger.Event{here}, true},
		"attached for it":             {[]ledger.Event{here, madeAt("well")}, true},
		"attached and reported":       {[]ledger.Event{here, madeAt("well"), nodeAs("well", reporting)}, false},
		"its node does not answer":    {[]ledger.Event{here, nodeAs("well", silent)}, false},
		"attached elsewhere":          {[]ledger.Event{here, madeAt("dead")}, false},
		"reported elsewhere":          {[]ledger.Event{here, nodeAs("dead", reporting)}, false},
		"in use where it is detached": {[]ledger.Event{here, nodeAs("dead", using)}, true},
		"a pod elsewhere, too":        {[]ledger.Event{here, dataAt("o", "dead", ledger.PodLive)}, true},
		"nobody":                      {nil, false},
		"nobody, and it is attached":  {[]ledger.Event{madeAt("well")}, false},
		"a pod that leaves":           {[]ledger.Event{dataAt("q", "well", ledger.PodTerminating)}, false},
		"a ticket":                    {[]ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow)}, true},
		"a ticket that asks":          {[]ledger.Event{asksAt("m", ledger.TypeManual, "well", func(*ledger.Ticket) {})}, false},
		"it is shared":                {[]ledger.Event{here, sharedDisk}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		if got := Arrives(p.snapshot, p.volume); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if Arrives(ledger.New().Snapshot(), nil) {
		t.Error("what nobody knows arrives")
	}
}
