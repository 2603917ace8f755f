// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestProcessTime(t *testing.T) {
	const rest = "S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 8 0 100"
	for stat, want := range map[string]time.Duration{
		"42 (etcd) " + rest:                     2 * time.Second,
		"42 (other) " + rest:                    0,
		"42 (etcd) S 1 2 3":                     0,
		"42 (a) (etcd) " + rest:                 0, // a process may call itself that
		"42 (etcd) S 1 2 3 4 5 6 7 8 9 10 x 50": 0,
		"":                                      0,
	} {
		if got := processTime(stat, "etcd"); got != want {
			t.Errorf("%q: %s, want %s", stat, got, want)
		}
	}
}

func TestMachineTime(t *testing.T) {
	for stat, want := range map[string][2]float64{
		"cpu  10 1 5 70 10 1 2 1 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n": {20, 100},
		"cpu  10 1 5 70\n":         {0, 0},
		"cpu  10 1 5 x 10 1 2 1\n": {0, 0},
		"intr 1 2 3 4 5 6 7 8\n":   {0, 0},
	} {
		if busy, all := machineTime(stat); busy != want[0] || all != want[1] {
			t.Errorf("%q: %v of %v, want %v", stat, busy, all, want)
		}
	}
}
