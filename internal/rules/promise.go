// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// onlyPromised is the Detail of HeldElsewhere if the named node gets the volume next and another still has
// it.
const onlyPromised = "promised"

// heldBack says why an exclusive volume would not come to a node for a request, without a living rival
// elsewhere: the planned hold gives or promises it to another node, or a grant elsewhere may be in flight.
// Grant asks this before it gives anything, and Fit after it has passed a user over (view.free), so that a
// placed request is not refused afterwards.
//
// Grant asks with the request's grant in the snapshot. For Fit that makes no difference: it asks only if
// users live at the node, or migrate to it.
func (p *planner) heldBack(r Request, n ledger.NodeName, name string) (Reason, bool) {
	if p.fencedTicket(r, n) {
		return Reason{Code: NotGranted, Volume: p.volume.ID, Claim: name}, true
	}
	p.hold = p.nextHold(hold(p.volume))
	if p.hold.Node != n && p.hold.Next.Node != n && !p.migratesTo(p.volume.NodeVolume(n)) {
		return p.heldElsewhere(name), true
	}
	return Reason{}, false
}

// fencedTicket says whether a ticket has the volume at another node that is fenced. A request that relies
// on the fence waits until that ticket is told to yield: afterwards the end of a fence can't make two
// holders.
func (p *planner) fencedTicket(r Request, n ledger.NodeName) bool {
	return slices.ContainsFunc(p.volume.NodeVolumes, func(place ledger.NodeVolume) bool {
		return place.Node != n && fenced(p.snapshot, p.volume, place.Node, p.now) && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
			return p.isGrantee(u) && requester(p.snapshot, u).UID != r.Who.UID
		})
	})
}

// heldElsewhere is the reason that a hold gives a volume to another node: the promised node, else the
// holder's.
func (p *planner) heldElsewhere(name string) Reason {
	reason := Reason{Code: HeldElsewhere, Volume: p.volume.ID, Claim: name, Node: p.hold.Node}
	if p.hold.Next.Node != "" {
		reason.Node, reason.Who, reason.Detail = p.hold.Next.Node, p.hold.Next.To, onlyPromised
	} else if len(p.hold.Requesters) > 0 {
		reason.Who = p.hold.Requesters[0]
	}
	return reason.named(p.snapshot)
}
