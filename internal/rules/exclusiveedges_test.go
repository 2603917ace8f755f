// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A volume is shared only if known to be.
func TestExclusive(t *testing.T) {
	for access, want := range map[ledger.Access]bool{
		ledger.AccessUnknown: true, ledger.AccessMany: false, ledger.AccessNode: true, ledger.AccessPod: true,
	} {
		if got := exclusive(access); got != want {
			t.Errorf("access %s: %t", access, got)
		}
	}
}

// The hold is asked only if it is empty and a user was passed over.
func TestWhatIsNotFree(t *testing.T) {
	here, there := dataAt("q", "well", ledger.PodLive), dataAt("q", "dead", ledger.PodLive)
	asks := asksAt("m", ledger.TypeManual, "dead")
	onePod := sharedDisk
	onePod.Access = ledger.AccessPod
	for name, test := range map[string]struct {
		hold  ledger.Hold
		tried ledger.NodeName
		facts []ledger.Event
		want  []ledger.Code
	}{
		"nobody":                          {ledger.Hold{}, "", nil, nil},
		"somebody here":                   {ledger.Hold{}, "", []ledger.Event{here}, nil},
		"somebody here, for one pod":      {ledger.Hold{}, "", []ledger.Event{here, onePod}, []ledger.Code{UsedByOtherPod}},
		"somebody there":                  {ledger.Hold{}, "", []ledger.Event{there}, []ledger.Code{HeldElsewhere}},
		"somebody there, for one pod":     {ledger.Hold{}, "", []ledger.Event{there, onePod}, []ledger.Code{UsedByOtherPod}},
		"somebody there, shared":          {ledger.Hold{}, "", []ledger.Event{there, sharedDisk}, nil},
		"somebody is tried there":         {ledger.Hold{}, "dead", nil, []ledger.Code{HeldElsewhere}},
		"one there, and another is tried": {ledger.Hold{}, "dead", []ledger.Event{there}, []ledger.Code{HeldElsewhere, HeldElsewhere}},
		"one asks there, passed over":     {ledger.Hold{}, "", []ledger.Event{here, asks}, nil},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, append([]ledger.Event{alive, dataAt("new", "", ledger.PodLive)}, test.facts...)...)
		s := p.snapshot
		if test.tried != "" {
			d := &ledger.Delta{}
			d.Add("new", test.tried)
			s = s.With(d)
		}
		w := evaluation{snapshot: s, request: Request{Pod: "asks", Who: ledger.Requester{UID: "asks"}, Created: 5}, node: "well", now: auditTime}
		if got := codes(w.free(s.Volume(disk), Need{Name: "data", Volume: disk, Access: ledger.AccessNode})); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
