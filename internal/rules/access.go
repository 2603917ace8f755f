// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// access returns how many nodes or pods a volume may serve. If the hold gives the volume to one node, pods
// that name the volume inline can't share it.
func access(s ledger.Snapshot, v *ledger.Volume, need ledger.Access) ledger.Access {
	a := told(s, v, need)
	if !exclusive(a) && (keptDetached(s, v) || keptByHold(s, v)) {
		return ledger.AccessNode
	}
	return a
}

// keptDetached says whether a granted ticket keeps a volume from every node. A shared volume then has one
// holder at a time.
func keptDetached(s ledger.Snapshot, v *ledger.Volume) bool {
	place := v.KeptDetached()
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return claimStateOf(s, u) == active
	})
}

// told returns how many nodes or pods a volume may serve by its PersistentVolumes or its pods; the policy
// decides if they name no access mode. need is the request's own access mode: it counts for a volume that
// is at no node and has no other user.
func told(s ledger.Snapshot, v *ledger.Volume, need ledger.Access) ledger.Access {
	a := need
	if v != nil && v.ID.IsReal() {
		if v.Access != ledger.AccessUnknown {
			a = v.Access
		} else if len(v.NodeVolumes) > 0 {
			a = ledger.AccessUnknown
		}
	}
	if a == ledger.AccessUnset && v != nil && policyOf(s, v).EmptyIsExclusive {
		return ledger.AccessNode
	}
	return a
}

// keptByHold says whether a hold keeps a volume at one node although pods name it inline and would share
// it. A hold names a node only for an exclusive volume: a PersistentVolume or a pod said so, and that
// object may be gone. The hold counts while the volume may be at its node, or the users that it names are
// there.
func keptByHold(s ledger.Snapshot, v *ledger.Volume) bool {
	if v == nil || !v.OnlyInline() || hold(v).Node == "" {
		return false
	}
	place := v.NodeVolume(hold(v).Node)
	return place != nil && (place.OccupiesSlot() || place.WithoutAttachment() ||
		slices.ContainsFunc(place.Users, func(u ledger.User) bool { return namedInHold(s, v, u) }))
}

// namedInHold says whether the written hold gives the volume to a user.
func namedInHold(s ledger.Snapshot, v *ledger.Volume, u ledger.User) bool {
	who := requester(s, u)
	return v.Hold != nil && (v.Hold.Next.To.UID == who.UID || slices.ContainsFunc(v.Hold.Requesters, func(r ledger.Requester) bool { return r.UID == who.UID }))
}

// exclusive says whether a volume may be at one node only. A volume is exclusive unless it is known to be
// shared.
func exclusive(a ledger.Access) bool {
	return a != ledger.AccessMany && a != ledger.AccessUnset
}
