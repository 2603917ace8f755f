// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Brake stops a node's AfterUnreachable: too many nodes of its zone or of the cluster are unreachable
// (docs/decisions/0054).
type Brake struct {
	On   bool
	Zone ledger.Zone
}

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
	return fmt.Sprintf("more than %d%% of the nodes %s", ledger.MaxUnreachablePercent, where)
}

// unreachableAt completes a reason with the rule of force that will hold first.
func unreachableAt(reason Reason, n *ledger.Node, f forcing) Reason {
	reason.Code, reason.Seconds, reason.Brake = NodeUnreachable, secondsLeft(f), f.Brake
	reason.NodeDeleted = n == nil || !n.Exists
	return reason
}

// sayBrake writes into the hold why no time runs for its place, if the hold has no other reason.
func (p *holdPlan) sayBrake(h *ledger.Hold, place *ledger.VolumeOnNode, f forcing) {
	if f.Rule == "" && f.Brake.On && h.Reason == "" {
		reason := unreachableAt(Reason{Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node}, p.snapshot.Node(place.Node), f)
		h.Reason, h.Message = reason.Code, reason.Message()
	}
}

// unreachable is the rule of a silent node's time. It starts anew after too many nodes were unreachable,
// except for a take that the hold names: returning nodes have not been heard of yet.
func unreachable(s ledger.Snapshot, v *ledger.Volume, n *ledger.Node, t timing, now time.Time) forcing {
	t.continues = !t.whole
	if f, found := v.Hold.Fence(n.Name); found && f.Rule == t.rule && sameOutage(outageOf(f), n) {
		return t.run(v, n, now)
	}
	if brake := t.braked(s, n); brake.On {
		return forcing{Brake: brake}
	}
	return t.run(v, n, now)
}

// braked: without a brake, the time begins no earlier than the last release of one.
func (t *timing) braked(s ledger.Snapshot, n *ledger.Node) Brake {
	if zone, on := s.TooMany(n); on {
		return Brake{true, zone}
	}
	if lifted := s.Lifted(n); !lifted.IsZero() && !lifted.Before(t.since) {
		t.since, t.continues = lifted, false
	}
	return Brake{}
}

// Braked returns the brake on AfterUnreachable and the NetworkFence's time for a volume at a node that is
// not Ready; off if the policy has no time.
func Braked(s ledger.Snapshot, v *ledger.Volume, n *ledger.Node) Brake {
	if zone, on := s.TooMany(n); on && !ready(n) && timed(policyOf(s, v)) {
		return Brake{true, zone}
	}
	return Brake{}
}

// timed says whether a policy has a time that a brake can stop.
func timed(policy ledger.Policy) bool {
	fence := policy.NetworkFence
	return afterUnreachable(policy) >= 0 || fence.Class != "" && fence.After != nil && *fence.After >= 0
}

// HeldZones lists the zones, and the cluster, where a brake stops the policy's times for a driver and a
// class.
func HeldZones(s ledger.Snapshot, driver, class string) []*ledger.ZoneNodes {
	if !timed(PolicyFor(s, driver, class)) {
		return nil
	}
	var list []*ledger.ZoneNodes
	for z := range s.Zones() {
		if z.TooMany() {
			list = append(list, z)
		}
	}
	return list
}
