// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// access is how many a volume may serve. What pods say that name it inline does not take
// it from the node that its hold gives it to.
func access(s ledger.Snapshot, v *ledger.Volume, need ledger.Access) ledger.Access {
	a := told(s, v, need)
	if !exclusive(a) && (keptDetached(s, v) || keptByHold(s, v)) {
		return ledger.AccessNode
	}
	return a
}

// keptDetached says whether a granted ticket keeps a volume from every node. A shared volume then has one
// holder at a time, too.
func keptDetached(s ledger.Snapshot, v *ledger.Volume) bool {
	place := v.KeptDetached()
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return claimStateOf(s, u) == active
	})
}

// told is how many a volume may serve by what PersistentVolumes or pods say of it, with the
// policy's word where they name no access mode. need is the request's own word, for a
// volume that is nowhere yet, and that nobody else asks for.
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

// keptByHold says whether a hold keeps a volume for one node that the pods which name it
// inline would share. A hold names a node only where the volume is exclusive: its
// PersistentVolume said so, which may have gone before this process began, or a pod that
// may be gone, too. That counts as long as the volume may still be at that node, or those
// that the hold names are there.
func keptByHold(s ledger.Snapshot, v *ledger.Volume) bool {
	if v == nil || !v.OnlyInline() || hold(v).Node == "" {
		return false
	}
	place := v.NodeVolume(v.Hold.Node)
	return place != nil && (place.OccupiesSlot() || place.WithoutAttachment() ||
		slices.ContainsFunc(place.Users, func(u ledger.User) bool { return namedInHold(s, v, u) }))
}

// namedInHold says whether the hold as written gives the volume to a user.
func namedInHold(s ledger.Snapshot, v *ledger.Volume, u ledger.User) bool {
	who := requester(s, u)
	return v.Hold != nil && (v.Hold.Next.To.UID == who.UID || slices.ContainsFunc(v.Hold.Requesters, func(r ledger.Requester) bool { return r.UID == who.UID }))
}

// exclusive says whether a volume may be at one node only. What isn't known
// to be shared is exclusive.
func exclusive(a ledger.Access) bool {
	return a != ledger.AccessMany && a != ledger.AccessUnset
}
