// SPDX-License-Identifier: Apache-2.0

package attach

import "testing"

func TestPeak(t *testing.T) {
	got, err := peak("Name:\tx\nVmPeak:\t  9999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n")
	if err != nil || got != 2 {
		t.Errorf("%v MiB, %v; want 2", got, err)
	}
	if _, err := peak("Name:\tx\n"); err == nil {
		t.Error("no error without VmHWM")
	}
}

func TestSinceIsTheDifference(t *testing.T) {
	before := usage{cpuSeconds: map[string]float64{"etcd": 1.5}}
	after := usage{cpuSeconds: map[string]float64{"etcd": 4}}
	if got := after.since(before)["etcd"]; got != 2.5 {
		t.Errorf("%v s, want 2.5", got)
	}
}
