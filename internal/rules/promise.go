// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// onlyPromised as the Detail of HeldElsewhere says that the node which is named is to have the volume,
// and that another one has it still.
const onlyPromised = "promised"

// heldBack says why an exclusive volume would not come to a node for a request,
// though nobody living elsewhere claims it against that: another node has it, or
// is promised it, by the hold as it is to be; or a grant elsewhere may be on its
// way. Grant asks before it gives anything, and Fit where it has passed somebody
// over (view.free), so that who is placed is not refused for that afterwards.
//
// Grant asks with the request's grant in the snapshot. For Fit that makes no
// difference: it asks only where others live at the node, or migrate to it.
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

// fencedTicket says whether a ticket has the volume at another node that is fenced. Whoever relies on the fence has
// that ticket told first that it gives way, and waits until then: once it is told, no fence that ends makes two of them.
func (p *planner) fencedTicket(r Request, n ledger.NodeName) bool {
	return slices.ContainsFunc(p.volume.NodeVolumes, func(place ledger.NodeVolume) bool {
		return place.Node != n && fenced(p.snapshot, p.volume, place.Node, p.now) && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
			return p.isGrantee(u) && requester(p.snapshot, u).UID != r.Who.UID
		})
	})
}

// heldElsewhere is the reason that a hold gives a volume to another node: the one
// that it is promised to, else the one that has it.
func (p *planner) heldElsewhere(name string) Reason {
	reason := Reason{Code: HeldElsewhere, Volume: p.volume.ID, Claim: name, Node: p.hold.Node}
	if p.hold.Next.Node != "" {
		reason.Node, reason.Who, reason.Detail = p.hold.Next.Node, p.hold.Next.To, onlyPromised
	} else if len(p.hold.Requesters) > 0 {
		reason.Who = p.hold.Requesters[0]
	}
	return reason.named(p.snapshot)
}
