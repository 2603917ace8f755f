// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/moorage-dev/moorage/test/sim"
	"github.com/moorage-dev/moorage/test/sim/explore"
)

func main() {
	first := flag.Uint64("seed", 1, "the first `SEED` of the simulator")
	count := flag.Uint64("count", 1, "how many seeds to play, up to the first that breaks a rule")
	needs := flag.String("needs", "", "leave out the seeds whose configuration, printed, does not have this `TEXT`")
	worlds := flag.String("worlds", "", "`NAMES` of the explorer's small worlds to search, with semicolons between them; all; or none")
	states := flag.Int("states", 100000, "how many states of each world to search")
	flag.Parse()
	simulate(*first, *count, *needs)
	search(*worlds, *states)
	fmt.Fprintln(os.Stderr, "end") // it got so far
}

func simulate(first, count uint64, needs string) {
	for seed := first; seed < first+count; seed++ {
		config := sim.ConfigFor(seed)
		if !strings.Contains(fmt.Sprintf("%+v", config), needs) {
			continue
		}
		if r := sim.Run(config); len(r.Broken) > 0 {
			fmt.Printf("simulator\t%d\t%s\n", seed, r.Broken[0])
			return
		}
	}
}

func search(names string, limit int) {
	for _, w := range explore.Small() {
		if names != "all" && !strings.Contains(";"+names+";", ";"+w.Name+";") {
			continue
		}
		if r := explore.Search(w.Config, limit, nil); r.Fault != "" {
			fmt.Printf("explorer\t%s\t%s\n", w.Name, r.Fault)
			return
		}
	}
}
