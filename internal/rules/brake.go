// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Brake is what holds the time of AfterUnreachable for a node: more nodes of its zone, or of
// the whole cluster, are unreachable than the policy permits (docs/decisions/0054).
type Brake struct {
	Zone ledger.Zone
	Over ledger.MaxUnreachable // the policy's bound
}

// IsZero says whether nothing holds the time.
func (b Brake) IsZero() bool { return b == Brake{} }

// String says which nodes are unreachable.
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

// unreachableAt makes a reason of a node that is not ready or was deleted, with what is known of
// the rule of force that will be over first.
func unreachableAt(reason Reason, n *ledger.Node, f forcing) Reason {
	reason.Code, reason.Seconds, reason.Brake = NodeUnreachable, secondsLeft(f), f.Brake
	reason.NodeDeleted = n == nil || !n.Exists
	return reason
}

// sayBrake says in the hold why no time runs for its place, where it says nothing else.
func (p *planner) sayBrake(h *ledger.Hold, place *ledger.NodeVolume, f forcing) {
	if f.Rule == "" && !f.Brake.IsZero() && h.Reason == "" {
		reason := unreachableAt(Reason{Volume: p.volume.ID, Claim: claimOf(p.snapshot, p.volume), Node: place.Node}, p.snapshot.Node(place.Node), f)
		h.Reason, h.Message = reason.Code, reason.Message()
	}
}

// unreachable is the rule whose time runs while nothing is heard of a node. What is taken
// already by it, as the hold says, is taken to the end. Otherwise its time does not run while
// too many nodes are unreachable at once, and begins anew when that is over: those that are
// about to come back have not been heard of yet.
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

// braked is what holds the time for a node now; zero: nothing does, and the time begins when
// the last brake was lifted, if that was later.
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

// Braked is what holds the times of a policy, AfterUnreachable and that of its NetworkFence, for a
// volume at a node that is not Ready; zero: nothing does, or its policy has no such time.
func Braked(s ledger.Snapshot, v *ledger.Volume, n *ledger.Node) Brake {
	policy := policyOf(s, v)
	most := maxUnreachable(policy)
	if zone, on := s.Exceeded(n, most); on && !ready(n) && timed(policy) {
		return Brake{zone, most}
	}
	return Brake{}
}

// timed says whether a policy has a time that is held while too many nodes are unreachable.
func timed(policy ledger.Policy) bool {
	fence := policy.NetworkFence
	return afterUnreachable(policy) >= 0 || fence.Class != "" && fence.After != nil && *fence.After >= 0
}

// HeldZone is a zone, or the whole cluster, in which the times of a policy do not run.
type HeldZone struct {
	Brake
	*ledger.ZoneNodes // the zone's nodes, and those of them that can't be reached
}

// HeldZones lists where the times of the policy of a driver and a class do not run now, see Braked:
// more nodes are unreachable there than the policy permits.
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
