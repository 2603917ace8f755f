// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/proptest"
)

// A Go map is the model; earlier lists must not change.
func TestHandlesAreASet(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		var list handles
		set := map[string]bool{}
		key := func() string { return fmt.Sprintf("%05d", rapid.IntRange(0, 4*maxPart).Draw(t, "key")) }
		check := func(list handles, want []string) {
			if got := slices.Collect(list.all()); !slices.Equal(got, want) {
				t.Fatalf("has %v, want %v", got, want)
			}
			for _, part := range list.parts {
				if len(part) == 0 || len(part) > maxPart {
					t.Fatalf("a part has %d handles", len(part))
				}
			}
		}
		for i := range rapid.IntRange(0, 3*maxPart).Draw(t, "in order") {
			h := fmt.Sprintf("%05d", i)
			list, _ = list.with(h)
			set[h] = true
		}
		for range rapid.IntRange(1, maxPart).Draw(t, "steps") {
			was, had, h := list, slices.Sorted(maps.Keys(set)), key()
			var changed bool
			if rapid.Bool().Draw(t, "add") {
				if list, changed = list.with(h); changed == set[h] {
					t.Fatalf("adding %s changes it: %t", h, changed)
				}
				set[h] = true
			} else {
				if list, changed = list.without(h); changed != set[h] {
					t.Fatalf("removing %s changes it: %t", h, changed)
				}
				delete(set, h)
			}
			check(was, had)
		}
		check(list, slices.Sorted(maps.Keys(set)))
	})
}
