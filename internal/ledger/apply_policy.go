// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"time"
)

// policyKey is a policy's driver and class; Class is empty for the whole driver.
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

// policyChanged chooses the policy for a key: the oldest, then the smallest name.
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

// Policy returns the policy of a driver and a class, or, without a class, of the whole driver; nil: none.
func (s Snapshot) Policy(driver, class string) *Policy {
	return s.facts.rules.get(policyKey{driver, class})
}

// PolicyClasses iterates, in any order, over the classes with a policy of a driver. The driver's own
// policy is not among them.
func (s Snapshot) PolicyClasses(driver string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for p := range s.facts.rules.all() {
			if p.Driver == driver && p.Class != "" && !yield(p.Class) {
				return
			}
		}
	}
}
