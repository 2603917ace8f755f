// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Times of Kubernetes.
const (
	// DefaultAfterPodGone is the time from the deletion of the last pod at a node that is not ready to the
	// forced detach (attach_detach_controller.go, ReconcilerMaxWaitForUnmountDuration).
	DefaultAfterPodGone = 6 * time.Minute
	// AfterNodeDeleted is the time from a deleted node's last Ready to the end of its tickets.
	AfterNodeDeleted = 6 * time.Minute
	// never means a disabled rule.
	never = time.Duration(-1)
)

// PolicyFor returns the policy of a driver and a class. Each field comes from the policy for both, else the
// driver's policy, else the default. The oldest policy counts, then the smaller name.
func PolicyFor(s ledger.Snapshot, driver, class string) ledger.Policy {
	all := ledger.Policy{Driver: driver}
	if p := s.Policy(driver, ""); p != nil {
		all = *p
	}
	if p := s.Policy(driver, class); p != nil && class != "" {
		return inherit(*p, all)
	}
	return all
}

// inherit completes a class's policy by its driver's policy.
func inherit(p, all ledger.Policy) ledger.Policy {
	says := func(f ledger.PolicyFields, set bool) bool { return set || p.Says&f != 0 }
	if !says(ledger.FieldDetachDelay, p.DetachDelay != 0) {
		p.DetachDelay = all.DetachDelay
	}
	if !says(ledger.FieldLiveMigration, p.LiveMigration) {
		p.LiveMigration = all.LiveMigration
	}
	if !says(ledger.FieldUnpublishFences, p.UnpublishFences) {
		p.UnpublishFences = all.UnpublishFences
	}
	if !says(ledger.FieldFencedCondition, p.FencedCondition != "") {
		p.FencedCondition = all.FencedCondition
	}
	if !says(ledger.FieldOperations, p.AttachFor|p.DetachFor != 0) {
		p.AttachFor, p.DetachFor = all.AttachFor, all.DetachFor
	}
	if p.AfterPodGone == nil {
		p.AfterPodGone = all.AfterPodGone
	}
	if p.AfterUnreachable == nil {
		p.AfterUnreachable = all.AfterUnreachable
	}
	p.Says |= all.Says
	// Slots and calls belong to the driver.
	p.MaxSlots, p.Headroom, p.Workers = all.MaxSlots, all.Headroom, all.Workers
	p.NetworkFence = all.NetworkFence // a fence cuts a machine off from the whole driver
	return p
}

// policyOf combines the policies of a volume's PersistentVolumes: the strictest values. A volume attached
// for a deleted PersistentVolume may be of any class of its driver.
func policyOf(s ledger.Snapshot, v *ledger.Volume) ledger.Policy {
	var first string
	names := v.PVs()
	if len(names) > 0 {
		first = classOf(s, names[0])
	}
	policy := PolicyFor(s, v.ID.Driver, first)
	for _, name := range names {
		if class := classOf(s, name); class != first {
			policy = strictest(s, policy, PolicyFor(s, v.ID.Driver, class))
		}
	}
	if v.ID.IsReal() && !v.SourceKnown() {
		return strictestOfAll(s, v.ID.Driver, policy)
	}
	return policy
}

func classOf(s ledger.Snapshot, name string) string {
	if pv := s.PersistentVolume(name); pv != nil {
		return pv.Class
	}
	return ""
}

// strictestOfAll covers all policies of a driver, except the detach delay: no user returns for a volume
// without a PersistentVolume.
func strictestOfAll(s ledger.Snapshot, driver string, policy ledger.Policy) ledger.Policy {
	delay := policy.DetachDelay
	policy = strictest(s, policy, PolicyFor(s, driver, ""))
	for class := range s.PolicyClasses(driver) {
		policy = strictest(s, policy, PolicyFor(s, driver, class))
	}
	policy.DetachDelay = delay
	return policy
}

// strictest permits for an attached volume only what both policies permit. Other values come from a.
func strictest(s ledger.Snapshot, a, b ledger.Policy) ledger.Policy {
	gone := longer(afterPodGone(s, a), afterPodGone(s, b))
	unreachable := longer(afterUnreachable(a), afterUnreachable(b))
	a.AfterPodGone, a.AfterUnreachable = &gone, &unreachable
	a.DetachDelay = max(a.DetachDelay, b.DetachDelay)
	a.LiveMigration = a.LiveMigration && b.LiveMigration
	a.UnpublishFences = a.UnpublishFences && b.UnpublishFences
	if a.FencedCondition != b.FencedCondition {
		a.FencedCondition = ""
	}
	return a
}

// longer is the later of two rules' times; either may be never.
func longer(a, b time.Duration) time.Duration {
	if a < 0 || b < 0 {
		return never
	}
	return max(a, b)
}

// afterPodGone is the time of the rule for a volume: its policy's, else the cluster's.
func afterPodGone(s ledger.Snapshot, p ledger.Policy) time.Duration {
	switch {
	case p.AfterPodGone != nil:
		return *p.AfterPodGone
	case s.NoForceOnTimeout():
		return never
	}
	return DefaultAfterPodGone
}

func afterUnreachable(p ledger.Policy) time.Duration {
	if p.AfterUnreachable == nil {
		return never
	}
	return *p.AfterUnreachable
}

// Policy is the policy of a need.
func (n Need) Policy(s ledger.Snapshot) ledger.Policy {
	return PolicyFor(s, n.Volume.Driver, n.class())
}

// class is the StorageClass of a need; empty: none.
func (n Need) class() string {
	if n.Claim == nil {
		return ""
	}
	return n.Claim.Class
}
