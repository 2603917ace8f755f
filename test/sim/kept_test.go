// SPDX-License-Identifier: Apache-2.0

package sim

import "testing"

func TestKeptOffers(t *testing.T) {
	for seed := range uint64(40) {
		s := New(ConfigFor(seed))
		s.doubt = true
		if r := s.run(); len(r.Broken) > 0 {
			t.Errorf("seed %d: %v after %s", seed, r.Broken, r.All[len(r.All)-1])
		}
	}
}
