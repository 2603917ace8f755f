// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	rest := commands(false, ".", "1s", 2)
	if len(rest) != 1 || !slices.Contains(rest[0], "-skip") || !slices.Contains(rest[0], "-count=2") || !slices.Contains(rest[0], "./internal/ledger") {
		t.Errorf("the benchmarks are run by %q", rest)
	}
	slope := commands(true, ".", "1s", 1)
	if len(slope) != len(slopeSizes()) {
		t.Fatalf("the slope is run by %q", slope)
	}
	for i, nodes := range []string{"^nodes=1000$", "^nodes=5000$", "^nodes=15000$"} {
		if command := strings.Join(slope[i], " "); !strings.Contains(command, "^BenchmarkSlope$/"+nodes) || strings.Contains(command, "-skip") {
			t.Errorf("size %d of the slope is run by %q", i, command)
		}
	}
}
