// SPDX-License-Identifier: Apache-2.0

package explore_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/sim/explore"
)

func TestSmall(t *testing.T) {
	search(t, explore.Small())
}

// TestLarge searches the large worlds, or those whose names have EXPLORE in
// them; they take minutes each:
//
//	EXPLORE=slots go test -run TestLarge -timeout 2h -v ./test/sim/explore
func TestLarge(t *testing.T) {
	only := os.Getenv("EXPLORE")
	if only == "" {
		return
	}
	var list []explore.World
	for _, w := range explore.Large() {
		if only == "all" || strings.Contains(w.Name, only) {
			list = append(list, w)
		}
	}
	search(t, list)
}

func search(t *testing.T, worlds []explore.World) {
	for _, w := range worlds {
		t.Run(strings.ReplaceAll(w.Name, " ", "-"), func(t *testing.T) {
			began := time.Now()
			r := explore.Search(w.Config, 1<<30, func(states int) {
				t.Logf("%d states after %s", states, time.Since(began).Round(time.Second))
			})
			took := time.Since(began).Round(time.Second)
			if r.Fault != "" {
				r = explore.Shorten(w.Config, r)
			}
			t.Logf("%s, in %s", r, took)
			if r.Fault != "" || !r.Complete {
				t.Fail()
			}
		})
	}
}
