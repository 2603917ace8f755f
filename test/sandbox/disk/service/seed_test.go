// SPDX-License-Identifier: Apache-2.0

package service

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); seed.Value.String() == "0" && os.Getenv("PROPTEST_SEEDS") != "fresh" {
		if err := seed.Value.Set("1"); err != nil {
			panic(err) // rapid's seeds are numbers
		}
	}
	os.Exit(m.Run())
}
