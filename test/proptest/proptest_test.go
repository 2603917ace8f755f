// SPDX-License-Identifier: Apache-2.0

package proptest_test

import (
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/proptest"
)

func drawn(t *testing.T) []uint64 {
	t.Helper()
	var all []uint64
	proptest.Check(t, func(t *rapid.T) { all = append(all, rapid.Uint64().Draw(t, "number")) })
	return all
}

func TestTheSameTestDrawsTheSame(t *testing.T) {
	t.Setenv(proptest.SeedsEnv, "")
	if !slices.Equal(drawn(t), drawn(t)) {
		t.Error("two checks of one test differ")
	}
}

func TestAnotherTestDrawsOthers(t *testing.T) {
	t.Setenv(proptest.SeedsEnv, "")
	one := drawn(t)
	t.Run("inner", func(t *testing.T) {
		if slices.Equal(one, drawn(t)) {
			t.Error("another test draws the same")
		}
	})
}

func TestFreshSeeds(t *testing.T) {
	t.Setenv(proptest.SeedsEnv, "fresh")
	if flag.Lookup("rapid.seed").Value.String() != "0" {
		return // a seed on the command line counts more
	}
	if slices.Equal(drawn(t), drawn(t)) {
		t.Error("two checks with fresh seeds draw the same")
	}
}
