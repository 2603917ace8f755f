// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"reflect"
	"testing"
)

func TestProcessTicks(t *testing.T) {
	const stat = "42 (odd) name) S 1 42 42 0 -1 4194560 9 0 0 0 250 75 0 0 20 0 12 0 100 5 6\n"
	if got, err := processTicks(stat); err != nil || got != 325 {
		t.Errorf("got %d, %v; want utime 250 + stime 75", got, err)
	}
	for _, bad := range []string{"", "42 (name) S 1", "42 (name) S 1 2 3 4 5 6 7 8 9 10 x 12 13"} {
		if _, err := processTicks(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestMachineTicks(t *testing.T) {
	if got, err := machineTicks("cpu  100 20 30 9000 400 5 6 7 8 9\ncpu0 1 2 3\n"); err != nil || got != 161 {
		t.Errorf("got %d, %v; want user, nice, system, irq and softirq: 161", got, err)
	}
	for _, bad := range []string{"", "intr 1 2 3 4 5 6 7 8", "cpu 1 2"} {
		if _, err := machineTicks(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestCPUSince(t *testing.T) {
	before := cpuReading{byPID: map[int]uint64{1: 100, 2: 50, 3: 10}, machine: 1000}
	after := cpuReading{
		byPID:   map[int]uint64{1: 150, 2: 50, 3: 60, 4: 25},
		names:   map[int]string{1: "etcd", 2: componentOf("worker-1"), 3: componentOf("worker-12"), 4: "kube-apiserver"},
		machine: 1300,
	}
	want := map[string]float64{"etcd": 0.5, kubelets: 0.5, "kube-apiserver": 0.25, others: 1.75}
	if got := after.since(before); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
