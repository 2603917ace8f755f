// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/proptest"
)

// TestEasedMissesNothing has Eased and Fit judge every pod at every node in
// random worlds, before and after some things have happened.
func TestEasedMissesNothing(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		w := newWorld(proptest.Bytes(t, 500))
		watched, changes := w.ledger, w.ledger.Gather()
		before, _, _ := changes.Take()
		for len(w.rest) > 0 {
			for range 1 + w.below(4) {
				w.step()
			}
			if w.ledger != watched { // the controller has been restarted
				watched, changes = w.ledger, w.ledger.Gather()
				before, _, _ = changes.Take()
				continue
			}
			after, volumes, _ := changes.Take()
			w.compareEased(t, before, after, volumes)
			before = after
		}
	})
}

func (w *randomWorld) compareEased(t *rapid.T, before, after ledger.Snapshot, touched map[ledger.VolumeID]bool) {
	for _, p := range w.pods() {
		was, is := arbiter.PodRequest(before, &p), arbiter.PodRequest(after, &p)
		own := func(n arbiter.Need) bool { return touched[n.Volume] }
		if slices.ContainsFunc(was.Needs, own) || slices.ContainsFunc(is.Needs, own) || !w.arb.Admissible(before, was).Allowed() {
			continue
		}
		for i := range worldNodes {
			n := nodeName(i)
			if w.arb.Fit(after, is, n, w.Now).Allowed() && !w.arb.Fit(before, was, n, w.Now).Allowed() && !arbiter.Eased(before, after, is, n) {
				w.fail(t, "%s has come to fit %s, which is said not to be easier", p.Name, n)
			}
		}
	}
}
