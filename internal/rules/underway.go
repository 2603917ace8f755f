// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// UnderWay returns whether an attach or detach occupies one of its driver's workers, and the longest time
// without a change: 0 while in progress. A refused call occupies none: its attacher pauses. An unanswered
// detach occupies one for a minute: otherwise a few hanging ones would stop the driver everywhere.
func UnderWay(s ledger.Snapshot, place *ledger.VolumeOnNode, now time.Time) (bool, time.Duration) {
	va := place.Canonical()
	switch {
	case va == nil:
		return false, 0
	case va.Deleting:
		since, _ := s.Leaving(place)
		left := detachPatience - now.Sub(since)
		return va.DetachError.IsZero() && left > 0, max(left, 0)
	}
	return !va.Attached && va.AttachError.IsZero(), 0
}

// Answers returns whether a node is Ready. Other nodes' calls never keep its calls waiting.
func Answers(n *ledger.Node) bool { return ready(n) }

// noFreeWorker replaces Attaching or Detaching by NoFreeWorker if the controller may begin the work, and
// all workers are occupied. It is for messages: the controller decides the order.
func (a Arbiter) noFreeWorker(s ledger.Snapshot, v *ledger.Volume, reason Reason, now time.Time) Reason {
	place := v.OnNode(reason.Node)
	if place == nil || reason.Code != Attaching && reason.Code != Detaching {
		return reason
	}
	policy := PolicyFor(s, v.ID.Driver, "")
	if policy.Workers <= 0 || !workersBusy(s, v.ID.Driver, policy.Workers, Answers(s.Node(place.Node)), now) {
		return reason
	}
	p := a.planner(s, v, now)
	p.hold = p.asHeld()
	switch va := place.Own(); {
	case reason.Code == Attaching && va == nil && !p.forThem(place) && p.mayCreate(s.Node(place.Node), place):
	case reason.Code == Detaching && va != nil && !va.Deleting && !place.Reported && !p.Cooperative:
	default:
		return reason
	}
	reason.Detail = string(reason.Code)
	reason.Code, reason.Driver, reason.Policy, reason.Limit = NoFreeWorker, v.ID.Driver, policy.Name, int32(policy.Workers)
	return reason
}

// AwaitsWorker says whether an attach or detach waits for a worker.
func (a Arbiter) AwaitsWorker(s ledger.Snapshot, v *ledger.Volume, n ledger.NodeName, now time.Time) bool {
	reason := Reason{Code: Attaching, Node: n}
	if v.OnNode(n).HasAttachments() {
		reason.Code = Detaching
	}
	return a.noFreeWorker(s, v, reason, now).Code == NoFreeWorker
}

// workersBusy says whether all workers of a driver are occupied for a node that answers (live) or does not.
func workersBusy(s ledger.Snapshot, driver string, workers int, live bool, now time.Time) bool {
	for v, place := range s.UnderWay() {
		if v.Driver != driver || live && !Answers(s.Node(place.Node)) {
			continue
		}
		if keeps, _ := UnderWay(s, place, now); !keeps {
			continue
		}
		if workers--; workers == 0 {
			return true
		}
	}
	return false
}

// forThem says whether kube-controller-manager, which counts no workers, attaches the volume: for bound
// pods in Cooperative mode.
func (p *planning) forThem(place *ledger.VolumeOnNode) bool {
	return p.Cooperative && slices.ContainsFunc(place.Users, func(u ledger.User) bool { return u.Pod != "" })
}
