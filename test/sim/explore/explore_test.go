// SPDX-License-Identifier: Apache-2.0

package explore_test

import (
	"fmt"
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

// TestLarge searches the large worlds and the bad ones (all), only the latter (bad), or worlds with EXPLORE
// in their names, and prints a table of them. Each takes minutes:
//
//	EXPLORE=slots go test -run TestLarge -timeout 2h -v ./test/sim/explore
//
// EXPLORE_STATES=1000000 ends each search after a million states.
func TestLarge(t *testing.T) {
	if os.Getenv("EXPLORE") == "bad" {
		search(t, explore.Bad())
		return
	}
	search(t, matching(slices.Concat(explore.Large(), explore.Bad()), os.Getenv("EXPLORE")))
}

func matching(worlds []explore.World, words string) []explore.World {
	var list []explore.World
	for _, w := range worlds {
		if words == "all" || words != "" && strings.Contains(w.Name, words) {
			list = append(list, w)
		}
	}
	return list
}

var residual = map[string]string{
	"a kubelet killed between NodeUnpublish and NodeUnstage": "is deleted while it is mounted there",
	"a machine that lives, forced by time alone":             "by time alone a volume was taken from a machine that lives",
	"a node that is Ready again before its forced deletion":  "detached by force from a node that is Ready again",
}

// Faults without a fact in the API do break rules.
func TestResidual(t *testing.T) {
	for _, w := range explore.Residual() {
		t.Run(strings.ReplaceAll(w.Name, " ", "-"), func(t *testing.T) {
			r := explore.Search(w.Config, 1<<20, nil)
			if words := residual[w.Name]; words == "" || !strings.Contains(r.Fault, words) {
				t.Fatalf("it is not broken by %q: %s", words, r)
			}
			t.Log(explore.Shorten(w.Config, r))
		})
	}
}

func search(t *testing.T, worlds []explore.World) {
	limit := 1 << 30
	if n, err := strconv.Atoi(os.Getenv("EXPLORE_STATES")); err == nil {
		limit = n
	}
	table, all := "", 0
	for _, w := range worlds {
		t.Run(strings.ReplaceAll(w.Name, " ", "-"), func(t *testing.T) {
			r, took := searchOne(t, w, limit)
			found := "nothing is broken"
			switch {
			case r.Fault != "":
				found = r.Fault
			case !r.Complete:
				found += ", not to its end"
			}
			table += fmt.Sprintf("| %s | %d | %d | %s | %s |\n", w.Name, max(1, w.Leaders), r.States, took, found)
			all += r.States
		})
	}
	if len(worlds) > 0 {
		t.Logf("\n| world | leaders | states | time | found |\n|---|---|---|---|---|\n%s| all | | %d | | |", table, all)
	}
}

func searchOne(t *testing.T, w explore.World, limit int) (explore.Report, time.Duration) {
	began := time.Now()
	r := explore.Search(w.Config, limit, func(states int) {
		t.Logf("%d states after %s", states, time.Since(began).Round(time.Second))
	})
	took := time.Since(began).Round(time.Second)
	states := r.States
	if r.Fault != "" {
		r = explore.Shorten(w.Config, r)
		r.States = states
	}
	t.Logf("%s, in %s", r, took)
	if r.Fault != "" || !r.Complete && limit == 1<<30 {
		t.Fail()
	}
	return r, took
}
