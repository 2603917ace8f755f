// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Two bound pods may contend for several exclusive volumes. All volumes rank the pods in the same order, so that one pod
// gets all of them: first comes a pod that need not wait for a volume which is attached for another one that wants the
// same volume; then compareBound decides. A volume that is attached nowhere follows that order at each look. One that is
// attached stays: the pods there go on with it, or nobody can (crossed).

// claim is a living user of a volume at a node.
type claim struct {
	user ledger.User
	node ledger.NodeName
	r    Request
}

// compareClaims is the order in which those get the volume who live at several nodes. Negative: a comes first.
func (p *planner) compareClaims(a, b claim) int {
	x, y := p.snapshot.Pod(a.user.Pod), p.snapshot.Pod(b.user.Pod)
	if x == nil || y == nil {
		return CompareRequests(a.r, b.r)
	}
	return cmp.Or(p.waitsForClaimant(x)-p.waitsForClaimant(y), compareBound(x, y))
}

// waitsForClaimant is 1 for a pod that waits for another exclusive volume, which is attached elsewhere for a pod that
// wants this one, too, or that waits for such a pod in turn; else 0. Giving this volume to such a pod would have each
// wait for the next one.
func (p *planner) waitsForClaimant(pod *ledger.Pod) int {
	if p.waitsFor(pod, p.claims) {
		return 1
	}
	return 0
}

// waitsFor says whether a pod waits for a user: for another exclusive volume than this one, which is attached elsewhere
// for the user, or for a pod that waits for the user in turn.
func (p *planner) waitsFor(pod *ledger.Pod, whom func(ledger.User) bool) bool {
	seen := map[string]bool{pod.UID: true}
	for next := []*ledger.Pod{pod}; len(next) > 0; {
		pod, next = next[len(next)-1], next[:len(next)-1]
		for _, id := range p.snapshot.PodAt(pod.UID) {
			v := p.snapshot.Volume(id)
			if id == p.volume.ID || v == nil || !exclusive(access(p.snapshot, v, v.Access)) {
				continue
			}
			for i := range v.NodeVolumes {
				at := &v.NodeVolumes[i]
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
func (p *planner) claims(u ledger.User) bool {
	return u.Pod != "" && claimStateOf(p.snapshot, u) == active && slices.Contains(p.snapshot.PodAt(u.Pod), p.volume.ID)
}

// contend says whether a pod gives way to another one, at another node, which ranks before it: they want more than one
// exclusive volume both, this one among them, or the pod waits for the other one anyway.
func (p *planner) contend(first, pod *ledger.Pod) bool {
	return first.Node != pod.Node && (slices.ContainsFunc(p.snapshot.PodAt(first.UID), func(id ledger.VolumeID) bool {
		v := p.snapshot.Volume(id)
		return id != p.volume.ID && v != nil && exclusive(access(p.snapshot, v, v.Access)) && slices.Contains(p.snapshot.PodAt(pod.UID), id)
	}) || p.waitsFor(pod, func(u ledger.User) bool { return u.Pod == first.UID }))
}

// givesWay is the node to which a volume goes that its hold gives to another one, and that is not attached there: a
// pod that contends for several volumes with those who have it ranks before them all. Empty: there is none.
func (p *planner) givesWay(place *ledger.NodeVolume) ledger.NodeName {
	if p.mayBeAttached(place) || place.Node == ledger.Detached || slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return u.Pod == "" && claimStateOf(p.snapshot, u) != noClaim
	}) {
		return ""
	}
	who, at := p.best("")
	first := p.snapshot.Pod(who.Pod)
	if first == nil || at == place.Node || p.inhabited(p.volume.NodeVolume(at)) && p.mayBeAttached(p.volume.NodeVolume(at)) {
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

// goesAfter says whether a pod that is promised a volume goes after another one, with which it contends for several.
func (p *planner) goesAfter(u ledger.User, holder ledger.NodeName) bool {
	who, at := p.best(holder)
	first, pod := p.snapshot.Pod(who.Pod), p.snapshot.Pod(u.Pod)
	return first != nil && pod != nil && at != "" && first.UID != pod.UID && p.contend(first, pod)
}

// How the Detail of HeldElsewhere says that each of two bound pods has a volume attached which the other one waits for, and
// which of them was bound later: the one that is told, or the one that is named.
const (
	crossedTold  = "crossed, told"
	crossedNamed = "crossed, named"
)

// crossed adds to the reason of a place that waits for the pods of another one, which have the volume, that one of
// these waits in turn for a volume that is attached at this place, or for a pod that does: neither goes on before one
// of them is deleted.
func (p *planner) crossed(place *ledger.NodeVolume, reason Reason) Reason {
	holder := p.volume.NodeVolume(reason.Node)
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
