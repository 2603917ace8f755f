// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/moorage-dev/moorage/test/sim"
)

// schedules is how many runs a plain `go test` makes; SIM_SCHEDULES says
// otherwise.
const schedules = 1000

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func TestRuns(t *testing.T) {
	first, count := number(t, "SIM_FIRST", 1), number(t, "SIM_SCHEDULES", schedules)
	failed := 0
	for seed := first; seed < first+count; seed++ {
		r := sim.Run(sim.ConfigFor(seed))
		if len(r.Broken) == 0 {
			continue
		}
		t.Errorf("seed %d:\n%s", seed, sim.Shrink(r))
		if failed++; failed == 5 {
			t.Fatal("enough")
		}
	}
}
