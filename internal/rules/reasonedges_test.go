// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestWaysOut(t *testing.T) {
	const (
		left, held, endless, used   = forcedIn, "The time of afterUnreachable does not run while", "No time limit forces", "while a pod at that node uses it"
		meanwhile, made, back, once = "Meanwhile the time", "makes the Node again", "the node comes back", "; at once when"
	)
	all := []string{left, held, endless, used, meanwhile, made, back, once}
	brake := Brake{true, ledger.Zone{Name: "a"}}
	for name, test := range map[string]struct {
		r    Reason
		says []string
	}{
		"a time":                       {Reason{Seconds: 90}, []string{left, back, once}},
		"a second":                     {Reason{Seconds: 1}, []string{left, back, once}},
		"a time, of a deleted Node":    {Reason{Seconds: 90, NodeDeleted: true}, []string{left, made, once}},
		"a time, and another is held":  {Reason{Seconds: 90, Brake: brake}, []string{left, meanwhile, back, once}},
		"a second, another is held":    {Reason{Seconds: 1, Brake: brake}, []string{left, meanwhile, back, once}},
		"the time is held":             {Reason{Brake: brake}, []string{held, back}},
		"held, of a deleted Node":      {Reason{Brake: brake, NodeDeleted: true}, []string{held, made}},
		"held, and no other time is":   {Reason{Seconds: noTimeForces, Brake: brake}, []string{held, back}},
		"no time":                      {Reason{Seconds: noTimeForces}, []string{endless, back}},
		"no time, of a deleted Node":   {Reason{Seconds: noTimeForces, NodeDeleted: true}, []string{endless, made}},
		"somebody uses it":             {Reason{}, []string{used, back, once}},
		"somebody uses it, no Node is": {Reason{NodeDeleted: true}, []string{used, made, once}},
	} {
		text := test.r.waysOut()
		for _, words := range all {
			if got := strings.Contains(text, words); got != slices.Contains(test.says, words) {
				t.Errorf("%s: that it says %q is %t: %s", name, words, got, text)
			}
		}
	}
}

func TestWordsOfWhatIsKnown(t *testing.T) {
	who := ledger.Requester{Namespace: "shop", Name: "q", UID: "q"}
	for got, want := range map[string]string{
		"nobody" + (Reason{}).forWhom():                                "nobody",
		"hidden" + (Reason{Who: ledger.Requester{UID: "q"}}).forWhom(): "hidden for somebody of another namespace",
		"known" + (Reason{Who: who}).forWhom():                         "known for pod shop/q",
		"never" + (Reason{}).asked():                                   "never",
		"asked" + (Reason{Until: 1}).asked():                           "asked, which has been asked to let go of it by 1970-01-01T00:00:01Z",
		"long" + (Reason{}).since():                                    "long",
		"since" + (Reason{Since: 1}).since():                           "since (since 1970-01-01T00:00:01Z)",
		"claim: " + (Reason{Claim: "data", Volume: disk}).volume():     "claim: volume data",
		"no claim: " + (Reason{Volume: disk}).volume():                 "no claim: volume " + disk.String(),
		"not ready: " + (Reason{}).howUnreachable():                    "not ready: which is not ready",
		"deleted: " + (Reason{NodeDeleted: true}).howUnreachable():     "deleted: whose Node was deleted",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
