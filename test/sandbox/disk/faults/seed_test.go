// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"flag"
	"os"
	"testing"
)

// Random properties have a stated seed, as package proptest does; nothing here imports that.
func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); seed.Value.String() == "0" && os.Getenv("PROPTEST_SEEDS") != "fresh" {
		if err := seed.Value.Set("1"); err != nil {
			panic(err) // rapid's seeds are numbers
		}
	}
	os.Exit(m.Run())
}
