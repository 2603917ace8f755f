// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The times that apply where no policy says otherwise; the first is Kubernetes' own.
const (
	// DefaultAfterPodGone is how long after the last pod object of a node
	// that is not ready its volumes are detached by force
	// (attach_detach_controller.go, ReconcilerMaxWaitForUnmountDuration).
	DefaultAfterPodGone = 6 * time.Minute
	// DefaultYieldNotice is how long a ticket that yields has to let go of its volumes.
	DefaultYieldNotice = 30 * time.Second
	// DefaultAfterNodeDeleted is how long after a node stopped being Ready the tickets there
	// end, where there is no Node any more.
	DefaultAfterNodeDeleted = 6 * time.Minute
	// never stands for a rule that is switched off.
	never = time.Duration(-1)
)

// PolicyFor returns the policy that applies to a driver and a class: field by field
// what the one for both says, else what the one for all of the driver says, else the
// defaults. Of several policies for the same the oldest counts, then the one with the
// smaller name.
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

// inherit completes the policy for a class by the one for all of its driver.
func inherit(p, all ledger.Policy) ledger.Policy {
	says := func(f ledger.PolicyFields, set bool) bool { return set || p.Says&f != 0 }
	if !says(ledger.FieldDetachDelay, p.DetachDelay != 0) {
		p.DetachDelay = all.DetachDelay
	}
	if !says(ledger.FieldEmptyAccessModes, p.EmptyIsExclusive) {
		p.EmptyIsExclusive = all.EmptyIsExclusive
	}
	if !says(ledger.FieldRequireNodeWord, p.RequireNodeWord) {
		p.RequireNodeWord = all.RequireNodeWord
	}
	if !says(ledger.FieldRepairStaged, p.RepairStaged) {
		p.RepairStaged = all.RepairStaged
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
	if p.OperationTimeout == 0 {
		p.OperationTimeout = all.OperationTimeout
	}
	if p.AfterPodGone == nil {
		p.AfterPodGone = all.AfterPodGone
	}
	if p.AfterUnreachable == nil {
		p.AfterUnreachable = all.AfterUnreachable
	}
	if p.MaxUnreachable == nil {
		p.MaxUnreachable = all.MaxUnreachable
	}
	if p.YieldNotice == nil {
		p.YieldNotice = all.YieldNotice
	}
	if p.TicketsDeleted == nil {
		p.TicketsDeleted = all.TicketsDeleted
	}
	if p.TicketsLost == nil {
		p.TicketsLost = all.TicketsLost
	}
	p.Says |= all.Says
	// A node's slots and the driver's calls are not of a class.
	p.MaxSlots, p.Headroom, p.Workers = all.MaxSlots, all.Headroom, all.Workers
	p.NetworkFence = all.NetworkFence // nor is what a machine is cut off from
	return p
}

// policyOf returns the policy of a volume: of the policies for the classes of its
// PersistentVolumes, what forces it last and shares it least. One that is attached for a
// PersistentVolume that is gone may have been of any class of its driver.
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

// strictestOfAll is a policy made stricter by all policies of a driver, but for the
// delay of a detach: nobody comes back for a volume whose PersistentVolume is gone.
func strictestOfAll(s ledger.Snapshot, driver string, policy ledger.Policy) ledger.Policy {
	delay := policy.DetachDelay
	policy = strictest(s, policy, PolicyFor(s, driver, ""))
	for class := range s.PolicyClasses(driver) {
		policy = strictest(s, policy, PolicyFor(s, driver, class))
	}
	policy.DetachDelay = delay
	return policy
}

// strictest is a policy that permits for an attached volume what two others both
// permit. What concerns pods that are placed, or the whole driver, is as in the first.
func strictest(s ledger.Snapshot, a, b ledger.Policy) ledger.Policy {
	gone := longer(afterPodGone(s, a), afterPodGone(s, b))
	unreachable := longer(afterUnreachable(a), afterUnreachable(b))
	most := maxUnreachable(a).Stricter(maxUnreachable(b))
	a.AfterPodGone, a.AfterUnreachable, a.MaxUnreachable = &gone, &unreachable, &most
	a.DetachDelay = max(a.DetachDelay, b.DetachDelay)
	notice := max(yieldNotice(a), yieldNotice(b))
	a.YieldNotice = &notice
	deleted, lost := longer(ticketsDeleted(a), ticketsDeleted(b)), longer(ticketsLost(a), ticketsLost(b))
	a.TicketsDeleted, a.TicketsLost = &deleted, &lost
	a.LiveMigration = a.LiveMigration && b.LiveMigration
	a.UnpublishFences = a.UnpublishFences && b.UnpublishFences
	if a.FencedCondition != b.FencedCondition {
		a.FencedCondition = ""
	}
	a.EmptyIsExclusive = a.EmptyIsExclusive || b.EmptyIsExclusive
	a.RequireNodeWord = a.RequireNodeWord || b.RequireNodeWord
	a.RepairStaged = a.RepairStaged && b.RepairStaged
	return a
}

// longer is the later of two rules' times, of which each may be never.
func longer(a, b time.Duration) time.Duration {
	if a < 0 || b < 0 {
		return never
	}
	return max(a, b)
}

// afterPodGone is the time of the rule for a volume: its policy's, else the whole
// cluster's.
func afterPodGone(s ledger.Snapshot, p ledger.Policy) time.Duration {
	switch {
	case p.AfterPodGone != nil:
		return *p.AfterPodGone
	case s.NoForceOnTimeout():
		return never
	}
	return DefaultAfterPodGone
}

// setOr is what a policy sets, or what is so without it.
func setOr[T any](set *T, otherwise T) T {
	if set == nil {
		return otherwise
	}
	return *set
}

func yieldNotice(p ledger.Policy) time.Duration {
	return setOr(p.YieldNotice, DefaultYieldNotice)
}

func afterUnreachable(p ledger.Policy) time.Duration {
	return setOr(p.AfterUnreachable, never)
}

func maxUnreachable(p ledger.Policy) ledger.MaxUnreachable {
	return setOr(p.MaxUnreachable, ledger.DefaultMaxUnreachable())
}

// ticketsDeleted and ticketsLost are after which times tickets end at a node whose Node is gone, and
// at one that is not Ready.
func ticketsDeleted(p ledger.Policy) time.Duration {
	return setOr(p.TicketsDeleted, DefaultAfterNodeDeleted)
}

func ticketsLost(p ledger.Policy) time.Duration {
	return setOr(p.TicketsLost, never)
}

// Policy is the policy for what somebody needs, which need not be a volume yet.
func (n Need) Policy(s ledger.Snapshot) ledger.Policy {
	return PolicyFor(s, n.Volume.Driver, n.class())
}

// class is the StorageClass of what somebody needs; empty where it has none.
func (n Need) class() string {
	if n.Claim == nil {
		return ""
	}
	return n.Claim.Class
}
