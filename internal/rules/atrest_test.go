// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/rules"
)

func TestUnsettled(t *testing.T) {
	s := newScript()
	play := func(lines ...string) {
		for _, line := range lines {
			s.command(line)
		}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		found := s.arb.AuditAtRest(s.snapshot(), s.Now)
		for _, words := range want {
			if !slices.ContainsFunc(found, func(v rules.Violation) bool { return strings.Contains(v.Message, words) }) {
				t.Errorf("%s: %v, want %q among them", when, found, words)
			}
		}
		if len(want) == 0 && len(found) > 0 {
			t.Errorf("%s: %v", when, found)
		}
	}
	play("node worker-1 driver=disk limit=4", "pv pv-1 claim=data", "pod db claim=data node=worker-1")
	expect("a pod is bound, and nothing done for it", "still to do: create-attachment")
	play("run")
	expect("it runs")
	play("pv pv-2 claim=other", "ticket keep type=Manual node=worker-1 claims=other")
	expect("a ticket is asked for", "still to do: decide on ticket default/keep")
	play("run")
	expect("it is granted")
	play("delete claim=other")
	expect("what it asked for is gone", "still to do: take the grant from ticket default/keep")
	play("run")
	expect("it has lost its grant, and the volume has left")
}
