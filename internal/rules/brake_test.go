// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Node "dead" and others fall silent at 1000 s; the policy's time is two minutes.
type braked struct {
	others int  // other nodes that fall silent
	back   int  // the number of them that return at 1300 s
	fence  bool // the hold says that the rule takes the volume in the outage since then
	rule   string
	since  int64
	before time.Duration // measured by another leader in this outage
}

func (b braked) at(t *testing.T, now time.Time) forcing {
	t.Helper()
	two := 2 * time.Minute
	other := func(l *ledger.Ledger, at int64, version string, i int, ready ledger.Readiness) {
		name := fmt.Sprintf("other%d", i)
		l.Apply(time.Unix(at, 0), ledger.NodeState{Name: ledger.NodeName(name), UID: name, Version: version, Ready: ready, ReadySince: at})
	}
	var hold ledger.Hold
	attached := []ledger.VolumeID{{Driver: "d", Handle: "h"}}
	if b.fence {
		hold.Fences = []ledger.Fence{{Node: "dead", NodeUID: "x", Rule: b.rule, Since: b.since, Renewed: 7}}
	}
	if b.before > 0 {
		hold.Force = &ledger.Force{Rule: AfterUnreachable, Node: "dead", NodeUID: "x", Since: 40, Renewed: 7, Elapsed: b.before}
	}
	s, v, _ := concerned(t, "dead", "dead", hold, func(l *ledger.Ledger) {
		l.Apply(time.Unix(1000, 0), ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: &two})
		for i := range b.others {
			other(l, 1000, "1", i, ledger.ReadyUnknown)
		}
		l.Apply(time.Unix(1000, 0), ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyUnknown, ReadySince: 40, Managed: true, Reporting: true, Reported: attached, InUse: attached})
		l.Apply(time.Unix(1000, 0), ledger.Complete{})
		l.Apply(time.Unix(1000, 0), ledger.NodeLease{Node: "dead", Renewed: 7})
		for i := range b.back {
			other(l, 1300, "2", i, ledger.ReadyTrue)
		}
	})
	return fence(s, v, "dead", now)
}

func TestBrake(t *testing.T) {
	for name, test := range map[string]struct {
		braked
		now     int64
		elapsed time.Duration
		on      bool
	}{
		"one with another":                     {braked{others: 1}, 1100, 100 * time.Second, false},
		"one with two others":                  {braked{others: 2}, 1100, 0, true},
		"for long":                             {braked{others: 2}, 9000, 0, true},
		"one of them is back":                  {braked{others: 2, back: 1}, 1400, 100 * time.Second, false},
		"one of them is back, of too many":     {braked{others: 4, back: 1}, 1400, 0, true},
		"measured before":                      {braked{others: 1, before: time.Minute}, 1100, 160 * time.Second, false},
		"measured before, and one is back":     {braked{others: 2, back: 1, before: time.Minute}, 1310, 10 * time.Second, false},
		"it is being taken":                    {braked{others: 2, fence: true, rule: AfterUnreachable, since: 40}, 1400, 400 * time.Second, false},
		"it is being taken, and one is back":   {braked{others: 2, back: 1, fence: true, rule: AfterUnreachable, since: 40}, 1310, 310 * time.Second, false},
		"it is being taken by another rule":    {braked{others: 2, fence: true, rule: AfterPodGone, since: 40}, 1400, 0, true},
		"it was being taken in another outage": {braked{others: 2, fence: true, rule: AfterUnreachable, since: 39}, 1400, 0, true},
		"it was taken before, and one is back": {braked{others: 2, back: 1, fence: true, rule: AfterUnreachable, since: 39}, 1310, 10 * time.Second, false},
	} {
		f := test.at(t, time.Unix(test.now, 0))
		if f.Brake.On != test.on || test.on && f.Rule != "" || !test.on && (f.Rule != AfterUnreachable || f.Elapsed != test.elapsed) {
			t.Errorf("%s: %q has run for %s, held by %q", name, f.Rule, f.Elapsed, f.Brake)
		}
	}
}

// An earlier rule without a time continues.
func TestBrakeAndOtherRules(t *testing.T) {
	held := forcing{Brake: Brake{true, ledger.Zone{Name: "a"}}}
	taint, gone := forcing{Rule: OutOfService}, forcing{Rule: AfterPodGone, Left: time.Minute, Limit: time.Hour, Step: time.Minute}
	for _, test := range []struct{ a, b forcing }{{taint, held}, {held, taint}, {gone, held}, {held, gone}} {
		if f := test.a.sooner(test.b); f.Rule == "" {
			t.Errorf("%+v and %+v: %+v", test.a, test.b, f)
		}
	}
	if f := held.sooner(forcing{}).sooner(forcing{}); f.Brake != held.Brake || f.over() {
		t.Errorf("what holds the time is lost: %+v", f)
	}
	if f := (forcing{}).sooner(held); f.Brake != held.Brake {
		t.Errorf("what holds the time is lost: %+v", f)
	}
	for _, test := range []struct {
		reason Reason
		want   string
	}{
		{unreachableAt(Reason{Node: "n"}, &ledger.Node{Exists: true}, held), "does not run while more than 55% of the nodes in zone a can't be reached"},
		{unreachableAt(Reason{Node: "n"}, &ledger.Node{Exists: true}, held.sooner(gone)), "It is detached by force in 1m0s; at once when"},
		{unreachableAt(Reason{Node: "n"}, &ledger.Node{Exists: true}, held.sooner(gone)), "out-of-service. Meanwhile the time of afterUnreachable does not run, since more than 55% of the nodes in zone a can't be reached"},
		{unreachableAt(Reason{Node: "n"}, &ledger.Node{Exists: true}, forcing{}), "It is not detached by force while a pod"},
		{unreachableAt(Reason{Node: "n"}, &ledger.Node{Exists: true}, gone), "in use at n, which is not ready. It is detached"},
		{unreachableAt(Reason{Node: "n"}, nil, gone), "in use at n, whose Node was deleted. It is detached by force in 1m0s; at once when the machine's kubelet makes the Node again"},
		{unreachableAt(Reason{Node: "n"}, &ledger.Node{}, gone), "in use at n, whose Node was deleted. It is"},
	} {
		if got := test.reason.Message(); !strings.Contains(got, test.want) {
			t.Errorf("%q does not say %q", got, test.want)
		}
	}
}

func TestBrakeWords(t *testing.T) {
	for want, zone := range map[string]ledger.Zone{
		"more than 55% of the nodes of the cluster":         {Whole: true},
		"more than 55% of the nodes without a zone":         {},
		"more than 55% of the nodes in region r":            {Region: "r"},
		"more than 55% of the nodes in zone a":              {Region: "r", Name: "a"},
		"more than 55% of the nodes in zone europe-west-1a": {Region: "europe-west-1", Name: "europe-west-1a"},
	} {
		if got := (Brake{true, zone}).String(); got != want {
			t.Errorf("%+v: %q, want %q", zone, got, want)
		}
	}
}

func TestBrakesOfADriver(t *testing.T) {
	two, never := 2*time.Minute, time.Duration(-1)
	fence := ledger.NetworkFence{Class: "f", After: &two}
	for name, test := range map[string]struct {
		policy ledger.Policy
		want   int
	}{
		"of a NetworkFence":      {ledger.Policy{NetworkFence: fence}, 2},
		"others' NetworkFences":  {ledger.Policy{NetworkFence: ledger.NetworkFence{Class: "f"}}, 0},
		"a time":                 {ledger.Policy{AfterUnreachable: &two}, 2}, // the zone and the cluster
		"no time":                {ledger.Policy{}, 0},
		"never":                  {ledger.Policy{AfterUnreachable: &never}, 0},
		"of a class, not of all": {ledger.Policy{AfterUnreachable: &two, Class: "c"}, 0},
	} {
		s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
			test.policy.Name, test.policy.Version, test.policy.Driver = "p", "1", "d"
			l.Apply(auditTime, test.policy)
			for i := range 3 {
				name := fmt.Sprintf("other%d", i)
				l.Apply(auditTime, ledger.NodeState{Name: ledger.NodeName(name), UID: name, Version: "1"})
			}
		})
		if got := HeldZones(s, "d", ""); len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Another node's return may let time fence a node.
func TestEasedByTheZone(t *testing.T) {
	l := ledger.New()
	put := func(name, version string, ready ledger.Readiness) {
		l.Apply(auditTime, ledger.NodeState{Name: ledger.NodeName(name), UID: name, Version: version, Ready: ready})
	}
	put("a", "1", ledger.ReadyUnknown)
	put("b", "1", ledger.ReadyTrue)
	put("c", "1", ledger.ReadyTrue)
	before := l.Snapshot()
	put("c", "2", ledger.ReadyUnknown)
	after := l.Snapshot()
	if !Eased(before, after, Request{}, "a") {
		t.Error("a node of whose zone another one falls silent is as before")
	}
	if Eased(before, after, Request{}, "b") || Eased(before, after, Request{}, "gone") {
		t.Error("a Ready node is another than before, or one that nobody knows")
	}
}
