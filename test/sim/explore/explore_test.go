// SPDX-License-Identifier: Apache-2.0

package explore_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/sim/explore"
)

func TestSmall(t *testing.T) {
	search(t, explore.Small())
}

// TestLarge searches the large worlds and the bad ones, or those whose names have
// EXPLORE in them; they take minutes each:
//
//	EXPLORE=slots go test -run TestLarge -timeout 2h -v ./test/sim/explore
//
// EXPLORE_STATES=1000000 ends each search after so many states.
func TestLarge(t *testing.T) {
	search(t, matching(slices.Concat(explore.Large(), explore.Bad()), os.Getenv("EXPLORE")))
}

// TestOpen searches the worlds in which rules are broken today, or those whose names
// have EXPLORE_OPEN in them:
//
//	EXPLORE_OPEN=again go test -run TestOpen -v ./test/sim/explore
func TestOpen(t *testing.T) { search(t, matching(explore.Open(), os.Getenv("EXPLORE_OPEN"))) }

// matching are the worlds with these words in their names: none for none.
func matching(worlds []explore.World, words string) []explore.World {
	var list []explore.World
	for _, w := range worlds {
		if words == "all" || words != "" && strings.Contains(w.Name, words) {
			list = append(list, w)
		}
	}
	return list
}

// TestResidual checks that what no fact in the API shows does break rules.
func TestResidual(t *testing.T) {
	for _, w := range explore.Residual() {
		t.Run(strings.ReplaceAll(w.Name, " ", "-"), func(t *testing.T) {
			r := explore.Search(w.Config, 1<<20, nil)
			if r.Fault == "" {
				t.Fatalf("nothing is broken: %s", r)
			}
			t.Log(explore.Shorten(w.Config, r))
		})
	}
}

func search(t *testing.T, worlds []explore.World) {
	for _, w := range worlds {
		t.Run(strings.ReplaceAll(w.Name, " ", "-"), func(t *testing.T) {
			began := time.Now()
			limit := 1 << 30
			if n, err := strconv.Atoi(os.Getenv("EXPLORE_STATES")); err == nil {
				limit = n
			}
			r := explore.Search(w.Config, limit, func(states int) {
				t.Logf("%d states after %s", states, time.Since(began).Round(time.Second))
			})
			took := time.Since(began).Round(time.Second)
			if r.Fault != "" {
				r = explore.Shorten(w.Config, r)
			}
			t.Logf("%s, in %s", r, took)
			if r.Fault != "" || !r.Complete && limit == 1<<30 {
				t.Fail()
			}
		})
	}
}
