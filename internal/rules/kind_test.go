// SPDX-License-Identifier: Apache-2.0

package rules

import "testing"

func TestKinds(t *testing.T) {
	names := map[string]bool{}
	for k := WriteHold; k < Kinds; k++ {
		names[k.String()] = true
	}
	if len(names) != int(Kinds)-1 || names["none"] {
		t.Errorf("%d kinds have the names %v", Kinds-1, names)
	}
	for _, k := range []Kind{0, Kinds, Kinds + 1} {
		if k.String() != "none" {
			t.Errorf("kind %d is named %s", k, k)
		}
	}
}
