// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Without its PersistentVolume all classes count, except for the delay.
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

// The strictest permits what both permit, and requires what either requires, in any order.
func TestStrictest(t *testing.T) {
	type policy = ledger.Policy
	s := plannerOf(t, Arbiter{}, "", ledger.Hold{}).snapshot
	for name, test := range map[string]struct {
		a, b policy
		get  func(policy) any
		want any
	}{
		"a delay":                   {policy{DetachDelay: 1}, policy{DetachDelay: 2}, func(p policy) any { return p.DetachDelay }, time.Duration(2)},
		"a live migration, of one":  {policy{LiveMigration: true}, policy{}, func(p policy) any { return p.LiveMigration }, false},
		"of both":                   {policy{LiveMigration: true}, policy{LiveMigration: true}, func(p policy) any { return p.LiveMigration }, true},
		"unpublish fences, of one":  {policy{UnpublishFences: true}, policy{}, func(p policy) any { return p.UnpublishFences }, false},
		"unpublish fences, of both": {policy{UnpublishFences: true}, policy{UnpublishFences: true}, func(p policy) any { return p.UnpublishFences }, true},
		"a condition, of one":       {policy{FencedCondition: "Cut"}, policy{}, func(p policy) any { return p.FencedCondition }, ""},
		"one condition, of both":    {policy{FencedCondition: "Cut"}, policy{FencedCondition: "Cut"}, func(p policy) any { return p.FencedCondition }, "Cut"},
		"two conditions":            {policy{FencedCondition: "Cut"}, policy{FencedCondition: "Off"}, func(p policy) any { return p.FencedCondition }, ""},
	} {
		for _, got := range []policy{strictest(s, test.a, test.b), strictest(s, test.b, test.a)} {
			if is := test.get(got); is != test.want {
				t.Errorf("%s: %v, want %v", name, is, test.want)
			}
			if *got.AfterPodGone != DefaultAfterPodGone || *got.AfterUnreachable != never {
				t.Errorf("%s: where neither says so: %s after the pod has gone, %s unreachable", name, got.AfterPodGone, got.AfterUnreachable)
			}
		}
	}
}
