// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"time"
)

// policyKey has an empty Class for the whole driver.
type policyKey struct{ Driver, Class string }

func (p *Policy) key() policyKey { return policyKey{p.Driver, p.Class} }

func (p Policy) apply(l *Ledger, _ time.Time, t *Touched) {
	old := l.facts.policies.get(p.Name)
	if old != nil && !Newer(p.Version, old.Version) {
		return
	}
	l.facts.policies.put(l.gen, p.Name, &p)
	t.Policies = append(t.Policies, p.Name)
	l.policyChanged(t, p.key())
	if old != nil && old.key() != p.key() {
		l.policyChanged(t, old.key())
	}
}

func (e PolicyGone) apply(l *Ledger, _ time.Time, t *Touched) {
	if old := l.facts.policies.get(e.Name); old != nil {
		l.facts.policies.del(l.gen, e.Name)
		t.Policies = append(t.Policies, e.Name)
		l.policyChanged(t, old.key())
	}
}

// policyChanged chooses a key's oldest policy, then the smallest name.
func (l *Ledger) policyChanged(t *Touched, key policyKey) {
	var best *Policy
	for p := range l.facts.policies.all() {
		if p.key() == key && (best == nil || p.Created < best.Created || p.Created == best.Created && p.Name < best.Name) {
			best = p
		}
	}
	if best == nil {
		l.facts.rules.del(l.gen, key)
	} else {
		l.facts.rules.put(l.gen, key, best)
	}
	l.driverChanged(t, key.Driver, false)
}

// Policy returns a class's policy, or without a class the driver's; nil: none.
func (s Snapshot) Policy(driver, class string) *Policy {
	return s.facts.rules.get(policyKey{driver, class})
}

// PolicyClasses iterates, in any order, over a driver's classes with a policy.
func (s Snapshot) PolicyClasses(driver string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for p := range s.facts.rules.all() {
			if p.Driver == driver && p.Class != "" && !yield(p.Class) {
				return
			}
		}
	}
}
