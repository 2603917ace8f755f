// SPDX-License-Identifier: Apache-2.0

package work

import "testing"

func TestSweep(t *testing.T) {
	var s Sweep
	for _, step := range []struct {
		known int
		due   bool
		left  int
	}{
		{fewKnown - 1, false, 0},
		{fewKnown, true, 100},
		{199, false, 0},
		{200, true, 150},
		{299, false, 0},
		{300, true, 10},
		{fewKnown - 1, false, 0},
		{fewKnown, true, 0},
	} {
		if due := s.Due(step.known); due != step.due {
			t.Fatalf("with %d known: due: %t", step.known, due)
		} else if due {
			s.Left(step.left)
		}
	}
}
