// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Only an answer shows that the node was asked.
func TestAskNode(t *testing.T) {
	word := ledger.NodeWord{Node: "n1", UID: "w", Version: "3", Look: 4, Looked: 4}
	ask, look := "ask-node uid=w version=3", "get nodemountreports n1"
	asking := step(rules.AskNode, func(s *rules.Step) { s.Word = word })
	newer := word
	newer.Version, newer.Look = "5", 6
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"asked":                       {[]reply{replies(Done, newer)}, []string{ask, "tell LookAsked", "finished"}},
		"somebody else asks":          {[]reply{replies(Conflict), replies(Done, newer)}, []string{ask, look, "stale"}},
		"it is gone":                  {[]reply{replies(NotFound)}, []string{ask, "tell NodeWordGone", "stale"}},
		"it is gone after a conflict": {[]reply{replies(Conflict), replies(NotFound)}, []string{ask, look, "tell NodeWordGone", "stale"}},
		"no answer":                   {[]reply{replies(Unknown)}, []string{ask, "failed"}},
		"refused":                     {[]reply{replies(Refused)}, []string{ask, "tell LookRefused", "failed"}},
		"no answer to the read":       {[]reply{replies(Conflict), replies(Unknown)}, []string{ask, look, "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(attachment("5"), ledger.Unreported{Volume: disk, Node: "n1", UID: "va", Version: "5"})
			check(t, p.play(t, Do(asking), test.replies...), test.want...)
			want := int32(0)
			if name == "asked" {
				want = 5
			}
			if got := p.ledger.Snapshot().Volume(disk).OnNode("n1").Proof.Look; got != want {
				t.Errorf("asked with %d", got)
			}
			if name == "asked" && p.last.Sent.Look != 5 {
				t.Errorf("it asks with %d", p.last.Sent.Look)
			}
		})
	}
}

// A withdrawn number may have been answered.
func TestAskNodeNumber(t *testing.T) {
	for _, w := range []ledger.NodeWord{{Look: 4, Looked: 2}, {Look: 0, Looked: 4}} {
		if r := askNode(rules.Step{Node: "n1", Word: w}); r.Look != 5 {
			t.Errorf("after %+v it asks with %d", w, r.Look)
		}
	}
}
