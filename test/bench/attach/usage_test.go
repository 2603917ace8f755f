// SPDX-License-Identifier: Apache-2.0

package attach

import "testing"

func TestSinceIsTheDifference(t *testing.T) {
	before := usage{cpuSeconds: map[string]float64{"etcd": 1.5}}
	after := usage{cpuSeconds: map[string]float64{"etcd": 4}}
	if got := after.since(before)["etcd"]; got != 2.5 {
		t.Errorf("%v s, want 2.5", got)
	}
}
