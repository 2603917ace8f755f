// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"testing"

	"github.com/moorage-dev/moorage/test/sim"
)

// TestSeed plays the run SIM_SEED, and prints all its events:
//
//	SIM_SEED=42 go test -run TestSeed -v ./test/sim
func TestSeed(t *testing.T) {
	if os.Getenv("SIM_SEED") == "" {
		return
	}
	mix := config(t, number(t, "SIM_SEED", 0))
	r := sim.Shrink(sim.Run(mix))
	if len(r.Broken) == 0 {
		t.Log("nothing is broken")
		return
	}
	t.Error(r)
	r = sim.Replay(mix, r.Faulty, func(line string) { t.Log(line) })
	t.Log(r.Broken)
}
