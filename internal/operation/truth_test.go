// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestExpansionEndsWithThePersistentVolume(t *testing.T) {
	for name, phase := range map[string]func(*ledger.Claim){
		"bound": func(c *ledger.Claim) { c.Bound = true }, "says it is not": func(*ledger.Claim) {}, "says it is lost": func(c *ledger.Claim) { c.Lost = true },
	} {
		s := newScene(t, ledger.Policy{DetachFor: only(ledger.OperationExpansion)})
		s.works = []Work{expand("a")}
		s.decide()
		s.grant()
		s.decide()
		c := ledger.Claim{Key: claim("a"), UID: "uid-a", Version: s.next(), Class: "fast", PersistentVolume: "pv-a"}
		phase(&c)
		s.apply(c)
		if plan := s.decide(); len(plan.End)+len(plan.Over) > 0 {
			t.Errorf("%s: it has ended before: %+v", name, plan)
		}
		s.grown("a", 3)
		s.decide()
		s.has("shop/expansion-uid-a")
		s.grown("a", 4)
		if plan := s.decide(); len(plan.Over) != 1 || plan.Over[0] != (Over{ledger.OperationExpansion, Done}) {
			t.Errorf("%s: at its end: %+v", name, plan)
		}
		s.has("")
	}
}

// Claim and PersistentVolume must name each other.
func TestBoundByBoth(t *testing.T) {
	policy := ledger.Policy{AttachFor: only(ledger.AllOperations()...)}
	for name, test := range map[string]struct {
		claim ledger.Claim
		work  Work
		want  string
	}{
		"the PersistentVolume is another claim's": {ledger.Claim{Key: claim("evil"), UID: "uid-evil", PersistentVolume: "pv-a", Bound: true}, expand("evil"), ""},
		"cloned from such a one":                  {ledger.Claim{Key: claim("evil"), UID: "uid-evil", PersistentVolume: "pv-a", Bound: true}, cloneTo("n", "evil"), ""},
		"of an earlier claim of the name":         {ledger.Claim{Key: claim("a"), UID: "new", PersistentVolume: "pv-a", Bound: true}, expand("a"), ""},
		"it says that it is not bound":            {ledger.Claim{Key: claim("a"), UID: "uid-a", PersistentVolume: "pv-a"}, snapshotOf("x", "a"), "shop/snapshot-uid-x"},
	} {
		s := newScene(t, policy)
		s.target("n", nil)
		test.claim.Version, test.claim.Class = s.next(), "fast"
		if test.claim.UID == "new" {
			s.apply(ledger.ClaimGone{Key: test.claim.Key})
		}
		s.apply(test.claim)
		s.works = []Work{test.work}
		s.decide()
		if got := s.names(); got != test.want {
			t.Errorf("%s: tickets %q, want %q", name, got, test.want)
		}
	}
}

// A PersistentVolume that only the claim names may be seen late.
func TestCloneIsDoneByItsPersistentVolume(t *testing.T) {
	for name, comes := range map[string]bool{"it is seen late": true, "it never comes": false} {
		s := newScene(t, ledger.Policy{AttachFor: only(ledger.OperationClone)})
		s.target("n", nil)
		s.works = []Work{cloneTo("n", "a")}
		s.decide()
		s.grant()
		s.decide()
		s.target("n", func(c *ledger.Claim) { c.PersistentVolume, c.Bound = "pv-n", true })
		s.works = nil
		if plan := s.decide(); len(plan.Over) > 0 || plan.Again != patience {
			t.Fatalf("%s: %+v", name, plan)
		}
		s.has("")
		want := Done
		if comes {
			s.grown("n", 1)
		} else {
			s.after(patience)
			want = Unfinished
		}
		if plan := s.decide(); len(plan.Over) != 1 || plan.Over[0] != (Over{ledger.OperationClone, want}) {
			t.Errorf("%s: %+v", name, plan)
		}
	}
}
