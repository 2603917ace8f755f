// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The policy of a volume is that of its class; of several classes the strictest of theirs. Of
// which it was is not known once its PersistentVolume is gone, and then those of all classes
// count, but for the delay. What stands for a volume that is yet to be is of no class.
func TestPolicyOfAVolume(t *testing.T) {
	policy := func(class string, minutes time.Duration) ledger.Event {
		after := minutes * time.Minute
		return ledger.Policy{Name: "p" + class, Version: "1", Driver: "d", Class: class, AfterPodGone: &after, DetachDelay: after}
	}
	pv := func(name, class string) ledger.Event {
		return ledger.PersistentVolume{Name: name, Version: "2", Volume: disk, Access: ledger.AccessNode, Class: class}
	}
	gone := ledger.PersistentVolumeGone{Name: "pv"}
	for name, test := range map[string]struct {
		facts        []ledger.Event
		after, delay time.Duration // minutes
	}{
		"of no class":                      {nil, 10, 10},
		"of a class":                       {[]ledger.Event{pv("pv", "quick")}, 1, 1},
		"of a class without a policy":      {[]ledger.Event{pv("pv", "other")}, 10, 10},
		"of two classes":                   {[]ledger.Event{pv("pv", "quick"), pv("second", "slow")}, 20, 20},
		"of two classes, the slower first": {[]ledger.Event{pv("pv", "slow"), pv("second", "quick")}, 20, 20},
		"twice of one class":               {[]ledger.Event{pv("pv", "quick"), pv("second", "quick")}, 1, 1},
		"its PersistentVolume is gone":     {[]ledger.Event{pv("pv", "quick"), madeAt("well"), gone}, 20, 10},
		"one of two of one class is gone":  {[]ledger.Event{pv("pv", "quick"), pv("second", "quick"), madeAt("well"), gone}, 20, 1},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{policy("", 10), policy("quick", 1), policy("slow", 20)}, test.facts...)...)
		got := policyOf(p.snapshot, p.volume)
		if *got.AfterPodGone != test.after*time.Minute || got.DetachDelay != test.delay*time.Minute {
			t.Errorf("%s: %s after the pod has gone, a delay of %s", name, got.AfterPodGone, got.DetachDelay)
		}
		yetToBe := &ledger.Volume{ID: ledger.UnboundClaim("d", "u")}
		if got := policyOf(p.snapshot, yetToBe); *got.AfterPodGone != 10*time.Minute {
			t.Errorf("%s: of a volume that is yet to be: %s", name, got.AfterPodGone)
		}
	}
}

// The strictest of two policies permits what both do, and takes a volume for exclusive if one does.
func TestStrictest(t *testing.T) {
	s := plannerOf(t, Arbiter{}, "", ledger.Hold{}).snapshot
	for _, test := range []struct{ a, b, want ledger.Policy }{
		{ledger.Policy{}, ledger.Policy{}, ledger.Policy{}},
		{ledger.Policy{DetachDelay: 1}, ledger.Policy{DetachDelay: 2}, ledger.Policy{DetachDelay: 2}},
		{ledger.Policy{DetachDelay: 2}, ledger.Policy{DetachDelay: 1}, ledger.Policy{DetachDelay: 2}},
		{ledger.Policy{LiveMigration: true}, ledger.Policy{}, ledger.Policy{}},
		{ledger.Policy{}, ledger.Policy{LiveMigration: true}, ledger.Policy{}},
		{ledger.Policy{LiveMigration: true}, ledger.Policy{LiveMigration: true}, ledger.Policy{LiveMigration: true}},
		{ledger.Policy{EmptyIsExclusive: true}, ledger.Policy{}, ledger.Policy{EmptyIsExclusive: true}},
		{ledger.Policy{}, ledger.Policy{EmptyIsExclusive: true}, ledger.Policy{EmptyIsExclusive: true}},
	} {
		got := strictest(s, test.a, test.b)
		if got.DetachDelay != test.want.DetachDelay || got.LiveMigration != test.want.LiveMigration || got.EmptyIsExclusive != test.want.EmptyIsExclusive {
			t.Errorf("of %+v and %+v: %+v", test.a, test.b, got)
		}
		if *got.AfterPodGone != DefaultAfterPodGone || *got.AfterUnreachable != never {
			t.Errorf("where neither says so: %s after the pod has gone, %s unreachable", got.AfterPodGone, got.AfterUnreachable)
		}
	}
}
