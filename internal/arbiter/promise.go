// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
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
	who, at, told := p.committedElsewhere(r, n)
	switch {
	case told:
		return Reason{Code: NotGranted, Volume: p.volume.ID, Claim: name}, true
	case at != "": //mutant:forget-promises
		reason := Reason{Code: HeldElsewhere, Volume: p.volume.ID, Claim: name, Node: at, Who: who}
		if hold(p.volume).Next.Node == at {
			reason.Detail = onlyPromised
		}
		return reason.named(p.snapshot), true
	}
	p.hold = p.nextHold(hold(p.volume))
	if p.hold.Node != n && p.hold.Next.Node != n && !p.migratesTo(p.volume.NodeVolume(n)) {
		return p.heldElsewhere(name), true
	}
	return Reason{}, false
}

// committedElsewhere is to whom else, at another node, the volume is committed: to whom
// the hold as written promises it, or says that it migrates, as the grant may be on its way; and at a
// fenced node to any ticket that has it or may get it. Whoever ranks before, or
// relies on the fence, has that ticket told first that it gives way, and waits
// until then (told): once it is told, no fence that ends makes two of them. A ticket
// contends meanwhile, or nobody would tell the one that has the promise.
func (p *planner) committedElsewhere(r Request, n ledger.NodeName) (who ledger.Requester, at ledger.NodeName, told bool) {
	next := hold(p.volume).Next
	for i := range p.volume.NodeVolumes {
		place := &p.volume.NodeVolumes[i]
		if place.Node == n {
			continue
		}
		lost := fenced(p.snapshot, p.volume, place.Node, p.now)
		for _, u := range place.Users {
			who := requester(p.snapshot, u)
			if who.UID == r.Who.UID || !p.isGrantee(u) {
				continue
			}
			promised := standingOf(p.snapshot, u) == asking && place.Node == next.Node && who.UID == next.To.UID
			migrates := n != hold(p.volume).Node && migrationNamed(p.snapshot, p.volume, u)
			if lost || promised || migrates {
				return who, place.Node, lost || !r.ofPod() && CompareRequests(r, requestOf(p.snapshot, u)) < 0
			}
		}
	}
	return ledger.Requester{}, "", false
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
