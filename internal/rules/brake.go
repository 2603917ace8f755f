// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Brake stops the time of AfterUnreachable for a node: more nodes of its zone or of the cluster are
// unreachable than the policy permits (docs/decisions/0054).
type Brake struct {
	Zone ledger.Zone
	Over ledger.MaxUnreachable // the policy's bound
}

// IsZero says whether nothing stops the time.
func (b Brake) IsZero() bool { return b == Brake{} }

// String names the unreachable nodes.
func (b Brake) String() string {
	where := "of the cluster"
	switch z := b.Zone; {
	case z.Whole:
	case z.Name == "" && z.Region == "":
		where = "without a zone"
	case z.Name == "":
		where = "in region " + z.Region
	default:
		where = "in zone " + z.Name
	}
	switch {
	case b.Over.Nodes == 0 || b.Zone.Whole:
		return fmt.Sprintf("more than %d%% of the nodes %s", b.Over.Percent, where)
	case b.Over.Percent >= 100:
		return fmt.Sprintf("more than %d of the nodes %s", b.Over.Nodes, where)
	}
	return fmt.Sprintf("more than %d, or %d%%, of the nodes %s", b.Over.Nodes, b.Over.Percent, where)
}

// unreachableAt completes a reason for a node that is not Ready or deleted, with the rule of force that
// will hold first.
func unreachableAt(reason Reason, n *ledger.Node, f forcing) Reason {
	reason.Code, reason.Seconds, reason.Brake = NodeUnreachable, secondsLeft(f), f.Brake
	reason.NodeDeleted = n == nil || !n.Exists
	return reason
}

// sayBrake writes into the hold why no time runs for its place, if the hold has no other reason.
func (p *holdPlan) sayBrake(h *ledger.Hold, place *ledger.NodeVolume, f forcing) {
	if f.Rule == "" && !f.Brake.IsZero() && h.Reason == "" {
		reason := unreachableAt(Reason{Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node}, p.snapshot.Node(place.Node), f)
		h.Reason, h.Message = reason.Code, reason.Message()
	}
}

// unreachable is the rule of a silent node's time. A volume that the hold says is being taken by this rule
// is taken to the end. Otherwise the time stops while too many nodes are unreachable, and starts anew
// afterwards: returning nodes have not been heard of yet.
func unreachable(s ledger.Snapshot, v *ledger.Volume, n *ledger.Node, policy ledger.Policy, t timing, now time.Time) forcing {
	t.continues = !t.whole
	if f, found := v.Hold.Fence(n.Name); found && f.Rule == t.rule && sameOutage(outageOf(f), n) {
		return t.run(v, n, now)
	}
	if brake := t.braked(s, n, policy); !brake.IsZero() {
		return forcing{Brake: brake}
	}
	return t.run(v, n, now)
}

// braked returns the brake of a node's time. If it is zero, the time begins at the last release of a brake,
// if that was later.
func (t *timing) braked(s ledger.Snapshot, n *ledger.Node, policy ledger.Policy) Brake {
	most := maxUnreachable(policy)
	if zone, on := s.Exceeded(n, most); on {
		return Brake{zone, most}
	}
	if lifted := s.Lifted(n, most); !lifted.IsZero() && !lifted.Before(t.since) {
		t.since, t.continues = lifted, false
	}
	return Brake{}
}

// Braked returns the brake on AfterUnreachable, and on the time of a policy's NetworkFence, for a volume at
// a node that is not Ready. It is zero if nothing stops the time or the policy has none.
func Braked(s ledger.Snapshot, v *ledger.Volume, n *ledger.Node) Brake {
	policy := policyOf(s, v)
	most := maxUnreachable(policy)
	if zone, on := s.Exceeded(n, most); on && !ready(n) && timed(policy) {
		return Brake{zone, most}
	}
	return Brake{}
}

// timed says whether a policy has a time that a brake can stop.
func timed(policy ledger.Policy) bool {
	fence := policy.NetworkFence
	return afterUnreachable(policy) >= 0 || fence.Class != "" && fence.After != nil && *fence.After >= 0
}

// HeldZone is a zone, or the whole cluster, where a brake stops the times of a policy.
type HeldZone struct {
	Brake
	*ledger.ZoneNodes // the zone's nodes, and the unreachable ones
}

// HeldZones lists the zones where a brake stops the times of the policy of a driver and a class (see
// Braked).
func HeldZones(s ledger.Snapshot, driver, class string) []HeldZone {
	policy := PolicyFor(s, driver, class)
	if !timed(policy) {
		return nil
	}
	var list []HeldZone
	most := maxUnreachable(policy)
	for z := range s.Zones() {
		if z.Exceeds(most) {
			list = append(list, HeldZone{Brake{z.Zone, most}, z})
		}
	}
	return list
}
