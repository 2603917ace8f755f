// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func TestWriteHold(t *testing.T) {
	write := func(s *rules.Step) { s.Expect, s.Hold = "3", ledger.Hold{State: ledger.HoldHeld} }
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"written":         {[]reply{replies(Done)}, []string{"finished"}},
		"another version": {[]reply{replies(Conflict), replies(Done)}, []string{"get holds d^a", "stale"}},
		"there already":   {[]reply{replies(Exists), replies(Done)}, []string{"get holds d^a", "stale"}},
		"gone":            {[]reply{replies(NotFound), replies(NotFound)}, []string{"get holds d^a", "stale"}},
		"refused":         {[]reply{replies(Refused)}, []string{"failed"}},
		"no answer":       {[]reply{replies(Unknown)}, []string{"tell HoldUnanswered", "failed"}},
		"nor to the read": {[]reply{replies(Conflict), replies(Unknown)}, []string{"get holds d^a", "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := newPlayer().play(t, Do(step(rules.WriteHold, write)), test.replies...)
			check(t, got, append([]string{"write-hold version=3"}, test.want...)...)
		})
	}
}

func TestDeleteHold(t *testing.T) {
	drop := "delete-hold version=3"
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"done":            {[]reply{replies(Done)}, []string{drop, "tell HoldDropped", "finished"}},
		"gone":            {[]reply{replies(NotFound)}, []string{drop, "tell HoldDropped", "finished"}},
		"another version": {[]reply{replies(Conflict), replies(Done)}, []string{drop, "get holds d^a", "stale"}},
		"no answer":       {[]reply{replies(Unknown)}, []string{drop, "tell HoldUnanswered", "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := step(rules.DeleteHold, func(s *rules.Step) { s.Expect, s.Hold = "3", ledger.Hold{Transitions: 2} })
			check(t, newPlayer().play(t, Do(s), test.replies...), test.want...)
		})
	}
}

// An API server that drops boots is told once.
func TestHoldBoots(t *testing.T) {
	seen := func(boot string) ledger.HoldSeen {
		return ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{State: ledger.HoldHeld, BootID: boot}}
	}
	for name, test := range map[string]struct {
		drops bool // as far as known
		boot  string
		reply reply
		tells bool
	}{
		"kept":                           {false, "b", replies(Done, seen("b")), false},
		"dropped":                        {false, "b", replies(Done, seen("")), true},
		"dropped, as it is known":        {true, "b", replies(Done, seen("")), false},
		"kept, since it was upgraded":    {true, "b", replies(Done, seen("b")), true},
		"there was none":                 {false, "", replies(Done, seen("")), false},
		"the answer does not show it":    {false, "b", replies(Done), false},
		"there was none, and it is kept": {true, "", replies(Done, seen("b")), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(ledger.HoldBoots{Dropped: test.drops})
			want := []string{"write-hold", "finished"}
			if test.tells {
				want = []string{"write-hold", "tell HoldBoots", "finished"}
			}
			write := step(rules.WriteHold, func(s *rules.Step) { s.Hold = seen(test.boot).Hold })
			check(t, p.play(t, Do(write), test.reply), want...)
			if got := p.ledger.Snapshot().DropsHoldBoots(); got != (test.drops != test.tells) {
				t.Errorf("known to drop boots: %t", got)
			}
		})
	}
}
