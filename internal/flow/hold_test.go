// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestWriteHold(t *testing.T) {
	write := func(s *arbiter.Step) { s.Expect, s.Hold = "3", ledger.Hold{State: ledger.HoldHeld} }
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"written":         {[]reply{replies(Done)}, []string{"finished"}},
		"another version": {[]reply{replies(Conflict), replies(Done)}, []string{"get holds d^a", "stale"}},
		"there already":   {[]reply{replies(Exists), replies(Done)}, []string{"get holds d^a", "stale"}},
		"gone":            {[]reply{replies(NotFound), replies(NotFound)}, []string{"get holds d^a", "stale"}},
		"refused":         {[]reply{replies(Refused)}, []string{"failed"}},
		"no answer":       {[]reply{replies(Unknown)}, []string{"failed"}},
		"nor to the read": {[]reply{replies(Conflict), replies(Unknown)}, []string{"get holds d^a", "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newPlayer().play(t, Do(step(arbiter.WriteHold, write)), test.replies...)
			check(t, got, append([]string{"put-hold version=3"}, test.want...)...)
		})
	}
}

func TestDeleteHold(t *testing.T) {
	drop := "drop-hold version=3"
	pv := ledger.PersistentVolume{Name: "pv", Volume: disk}
	other := ledger.PersistentVolume{Name: "pv-2", Volume: ledger.VolumeID{Driver: driver, Handle: "z"}}
	held := ledger.Hold{Transitions: 2, PVs: []string{"pv-1"}}
	of, elsewhere := attachment("5"), attachment("5")
	elsewhere.Name, of.PersistentVolume = "csi-other", "gone"
	for name, test := range map[string]struct {
		hold    ledger.Hold
		replies []reply
		want    []string
	}{
		"nothing to lose":     {ledger.Hold{PVs: []string{"pv"}}, []reply{replies(Done)}, []string{drop, "finished"}},
		"gone":                {ledger.Hold{}, []reply{replies(NotFound)}, []string{drop, "finished"}},
		"another version":     {ledger.Hold{}, []reply{replies(Conflict), replies(Done)}, []string{drop, "get holds d^a", "stale"}},
		"nothing is there":    {held, []reply{replies(Done, elsewhere), replies(Done, other), replies(Done)}, []string{"list attachments", "list pvs", drop, "finished"}},
		"it has another name": {held, []reply{replies(Done), replies(Done, other, pv)}, []string{"list attachments", "list pvs", "stale"}},
		"it is attached":      {held, []reply{replies(Done, elsewhere, of)}, []string{"list attachments", "failed"}},
		"no answer":           {held, []reply{replies(Unknown)}, []string{"list attachments", "failed"}},
		"no second answer":    {held, []reply{replies(Done), replies(Unknown)}, []string{"list attachments", "list pvs", "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := step(arbiter.DeleteHold, func(s *arbiter.Step) { s.Expect, s.Hold = "3", test.hold })
			check(t, newPlayer().play(t, Do(s), test.replies...), test.want...)
		})
	}
}
