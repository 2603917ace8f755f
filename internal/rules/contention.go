// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Bound pods may contend for several exclusive volumes. All volumes rank the pods in the same order, so
// that one pod gets all. A pod comes last if it waits for a volume attached for a rival; then compareBound
// decides. An unattached volume follows this order at each decision. An attached volume stays: its pods
// continue, or no pod can (crossed).

type claim struct {
	user ledger.User
	node ledger.NodeName
	r    Request
}

// compareClaims orders claims on the volume at several nodes. Negative: a comes first.
func (p *planning) compareClaims(a, b claim) int {
	x, y := p.snapshot.Pod(a.user.Pod), p.snapshot.Pod(b.user.Pod)
	if x == nil || y == nil {
		return CompareRequests(a.r, b.r)
	}
	return cmp.Or(p.waitsForClaimant(x)-p.waitsForClaimant(y), compareBound(x, y))
}

// waitsForClaimant is 1 if the pod waits, also through others, for an exclusive volume attached elsewhere
// for another claimant: with this volume, both would wait for each other. Else 0.
func (p *planning) waitsForClaimant(pod *ledger.Pod) int {
	if p.waitsFor(pod, p.claims) {
		return 1
	}
	return 0
}

// waitsFor says whether a pod waits, also through others, for an accepted user of another exclusive volume.
func (p *planning) waitsFor(pod *ledger.Pod, whom func(ledger.User) bool) bool {
	seen := map[string]bool{pod.UID: true}
	for next := []*ledger.Pod{pod}; len(next) > 0; {
		pod, next = next[len(next)-1], next[:len(next)-1]
		for _, id := range p.snapshot.PodAt(pod.UID) {
			v := p.snapshot.Volume(id)
			if id == p.volume.ID || v == nil || !exclusive(access(p.snapshot, v, v.Access)) {
				continue
			}
			for i := range v.OnNodes {
				at := &v.OnNodes[i]
				if at.Node == pod.Node || !at.OccupiesSlotWithoutUse() {
					continue
				}
				for _, u := range at.Users {
					switch {
					case whom(u):
						return true
					case u.Pod != "" && !seen[u.Pod] && claimStateOf(p.snapshot, u) == active:
						seen[u.Pod], next = true, append(next, p.snapshot.Pod(u.Pod))
					}
				}
			}
		}
	}
	return false
}

// claims says whether a user is a living pod that wants this volume.
func (p *planning) claims(u ledger.User) bool {
	return u.Pod != "" && claimStateOf(p.snapshot, u) == active && slices.Contains(p.snapshot.PodAt(u.Pod), p.volume.ID)
}

// contend says whether a pod gives way to a pod elsewhere that ranks before it: both want another exclusive
// volume too, or it waits anyway.
func (p *planning) contend(first, pod *ledger.Pod) bool {
	return first.Node != pod.Node && (slices.ContainsFunc(p.snapshot.PodAt(first.UID), func(id ledger.VolumeID) bool {
		v := p.snapshot.Volume(id)
		return id != p.volume.ID && v != nil && exclusive(access(p.snapshot, v, v.Access)) && slices.Contains(p.snapshot.PodAt(pod.UID), id)
	}) || p.waitsFor(pod, func(u ledger.User) bool { return u.Pod == first.UID }))
}

// givesWay is the node that gets an unattached volume from its hold's node, for a contending pod that ranks
// before all users there. Empty: none.
func (p *planning) givesWay(place *ledger.VolumeOnNode) ledger.NodeName {
	if p.mayBeAttached(place) || place.Node == ledger.Detached || slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return u.Pod == "" && claimStateOf(p.snapshot, u) != noClaim
	}) {
		return ""
	}
	who, at := p.best("")
	first := p.snapshot.Pod(who.Pod)
	if first == nil || at == place.Node || p.inhabited(p.volume.OnNode(at)) && p.mayBeAttached(p.volume.OnNode(at)) {
		return ""
	}
	if !slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		pod := p.snapshot.Pod(u.Pod)
		return p.claims(u) && p.contend(first, pod)
	}) {
		return ""
	}
	return at
}

// goesAfter says whether a pod with a promised volume goes after a pod that contends with it for several
// volumes.
func (p *planning) goesAfter(u ledger.User, holder ledger.NodeName) bool {
	who, at := p.best(holder)
	first, pod := p.snapshot.Pod(who.Pod), p.snapshot.Pod(u.Pod)
	return first != nil && pod != nil && at != "" && first.UID != pod.UID && p.contend(first, pod)
}

// Details of HeldElsewhere: two bound pods each have an attached volume that the other waits for. They say
// whether the told or the named pod was bound later.
const (
	crossedTold  = "crossed, told"
	crossedNamed = "crossed, named"
)

// crossed completes the reason of a place whose blockers wait in turn for a volume here, until a pod is
// deleted.
func (p *planning) crossed(place *ledger.VolumeOnNode, reason Reason) Reason {
	holder := p.volume.OnNode(reason.Node)
	if reason.Code != HeldElsewhere || reason.Detail != "" || holder == nil || !holder.OccupiesSlotWithoutUse() {
		return reason
	}
	for _, u := range holder.Users {
		other := p.snapshot.Pod(u.Pod)
		if !p.claims(u) {
			continue
		}
		for _, mine := range place.Users {
			pod := p.snapshot.Pod(mine.Pod)
			if !p.claims(mine) || !p.waitsFor(other, func(u ledger.User) bool { return u == mine }) {
				continue
			}
			reason.Who, reason.Detail = requester(p.snapshot, u), crossedNamed
			if compareBound(other, pod) < 0 {
				reason.Detail = crossedTold
			}
			return reason
		}
	}
	return reason
}
