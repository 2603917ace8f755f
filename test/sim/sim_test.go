// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/moorage-dev/moorage/test/askept"
	"github.com/moorage-dev/moorage/test/sim"
)

// SIM_SCHEDULES overrides the number of runs.
const schedules = 10000

// SIM_FAILURES overrides the number of failed runs after which play ends.
const failures = 5

// open are seeds with a known, open risk (docs/internals/simulation.md): each breaks with exactly these
// words.
var open = map[uint64]string{
	7622: "pod p9 is bound to w2 while pod p4 at w3 uses csi.sim^late1",
}

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

// SIM_BAD has kinds of badness, as in SIM_BAD=stuck,remade.
func config(t *testing.T, seed uint64) sim.Config {
	c := sim.ConfigFor(seed)
	if names := os.Getenv("SIM_BAD"); names != "" {
		worse, err := c.Worse(names)
		if err != nil {
			t.Error(err)
		}
		return worse
	}
	return c
}

// SIM_FIRST is the first seed.
func TestRuns(t *testing.T) {
	first, count := number(t, "SIM_FIRST", 1), number(t, "SIM_SCHEDULES", schedules)
	play(t, first, func(made uint64) bool { return made < count })
}

// TestSoak plays new runs for the time SOAK:
//
//	SOAK=1h go test -run TestSoak -timeout 0 -v ./test/sim
func TestSoak(t *testing.T) {
	text := os.Getenv("SOAK")
	if text == "" {
		return
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SOAK: %v", err)
	}
	first, end := rand.Uint64N(1<<40), time.Now().Add(long)
	t.Logf("from seed %d on", first)
	play(t, first, func(uint64) bool { return time.Now().Before(end) })
}

func play(t *testing.T, first uint64, more func(made uint64) bool) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // little lives long
	var made, failed atomic.Uint64
	enough := number(t, "SIM_FAILURES", failures)
	var workers sync.WaitGroup
	began := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				n := made.Add(1) - 1
				if !more(n) || failed.Load() >= enough {
					made.Add(^uint64(0))
					return
				}
				r := sim.Run(config(t, first+n))
				if words, known := open[first+n]; known && os.Getenv("SIM_BAD") == "" {
					if !strings.Contains(strings.Join(r.Broken, "\n"), words) {
						t.Errorf("seed %d breaks no more as it did: take it from the list (%v)", first+n, r.Broken)
					}
				} else if len(r.Broken) > 0 && failed.Add(1) <= enough {
					t.Errorf("seed %d: SIM_SEED=%d go test -run TestSeed -v ./test/sim\n%s", first+n, first+n, sim.Shrink(r))
				}
			}
		})
	}
	workers.Wait()
	took := time.Since(began)
	t.Logf("%d runs from seed %d on in %s, %.0f a second", made.Load(), first, took.Round(time.Second), float64(made.Load())/took.Seconds())
}
