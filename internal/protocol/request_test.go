// SPDX-License-Identifier: Apache-2.0

package protocol

import "testing"

// Each verb has its own name.
func TestVerbs(t *testing.T) {
	names := map[string]bool{}
	for v := GetObject; v < Verbs; v++ {
		names[v.String()] = true
	}
	if len(names) != int(Verbs)-1 || names["unknown"] {
		t.Errorf("%d verbs have the names %v", Verbs-1, names)
	}
	for _, v := range []Verb{0, Verbs, Verbs + 1} {
		if v.String() != "unknown" {
			t.Errorf("verb %d is named %s", v, v)
		}
	}
}
