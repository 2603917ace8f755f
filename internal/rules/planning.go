// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// planning is what the plans for one volume share. Each layer asks only the ones below: holdPlan decides
// the holder, detachPlan takes the volume from other nodes, attachPlan brings it to its holder's node.
type planning struct {
	Arbiter
	snapshot  ledger.Snapshot
	volume    *ledger.Volume
	now       time.Time
	exclusive bool
	onlyHeld  bool        // exclusive only by its hold, see keptByHold
	shared    bool        // exclusive only while a ticket keeps it detached
	required  bool        // the driver needs attachments
	anySlot   bool        // ignore whether there is a slot
	hold      ledger.Hold // as it should be
	plan      Plan

	place *ledger.VolumeOnNode // of the cached va
	ownAt *ledger.Attachment
}

// isUnknown says whether the volume is unknown at a node.
func (p *planning) isUnknown(place *ledger.VolumeOnNode) bool {
	return p.snapshot.IsUnknown(p.volume, place)
}

// own is cached, since each lookup computes its name.
func (p *planning) own(place *ledger.VolumeOnNode) *ledger.Attachment {
	if place == nil || place != p.place {
		p.place, p.ownAt = place, place.Own()
	}
	return p.ownAt
}

func (p *planning) add(s Step) {
	s.Volume = p.volume.ID
	p.plan.Steps = append(p.plan.Steps, s)
}

func (p *planning) recheck(in time.Duration) {
	if at := p.now.Add(in); p.plan.Recheck.IsZero() || at.Before(p.plan.Recheck) {
		p.plan.Recheck = at
	}
}

// wanted says whether the volume must be at a node: a user there has a right to it.
func (p *planning) wanted(place *ledger.VolumeOnNode) bool {
	if p.exclusive && p.hold.Node != place.Node && !p.migratesTo(place) {
		return false
	}
	return p.hasRight(place, false)
}

// migratesTo says whether a live migration may have the volume at a second node.
func (p *planning) migratesTo(place *ledger.VolumeOnNode) bool {
	return migratesTo(p.snapshot, p.volume, place)
}

func migratesTo(s ledger.Snapshot, v *ledger.Volume, place *ledger.VolumeOnNode) bool {
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool { return migrating(s, v, u) })
}

// hasRight: a fence ends all rights at a node; with promised, tickets that were not told yet still count.
func (p *planning) hasRight(place *ledger.VolumeOnNode, promised bool) bool {
	if place == nil || !p.required {
		return false
	}
	if fenced(p.snapshot, p.volume, place.Node, p.now) {
		return promised && p.hasGrantee(place)
	}
	for _, u := range place.Users {
		switch claimStateOf(p.snapshot, u) {
		case active, terminating:
			if !p.outranked(u, place.Node) {
				return true
			}
		case requested, noClaim:
		}
	}
	return false
}

func (p *planning) hasGrantee(place *ledger.VolumeOnNode) bool {
	return slices.ContainsFunc(place.Users, p.isGrantee)
}

func (p *planning) isGrantee(u ledger.User) bool {
	return u.Pod == "" && claimStateOf(p.snapshot, u) == active
}

// outranked says whether a user must yield.
func (p *planning) outranked(u ledger.User, n ledger.NodeName) bool {
	for range p.outrankers(u, n) {
		return true
	}
	return false
}

// outrankers are the users to which a user must yield. It omits users that Grant passes over
// (evaluation.others, evaluation.blocks), users at a fenced node, and pods that wait for other holders. It
// is empty if a live migration has the volume beside the user.
func (p *planning) outrankers(u ledger.User, n ledger.NodeName) iter.Seq2[ledger.NodeName, Request] {
	return func(yield func(ledger.NodeName, Request) bool) {
		t := p.snapshot.Ticket(u.Ticket)
		if t == nil || !t.Type.Yields() {
			return
		}
		for _, other := range p.displacers(t) {
			if !yield(n, requestOf(p.snapshot, other)) {
				return
			}
		}
		if !p.exclusive || p.migratesTo(p.volume.OnNode(n)) {
			return
		}
		for i := range p.volume.OnNodes {
			place := &p.volume.OnNodes[i]
			if place.Node == n || fenced(p.snapshot, p.volume, place.Node, p.now) {
				continue
			}
			for _, other := range place.Users {
				r := requestOf(p.snapshot, other)
				if claimStateOf(p.snapshot, other) != active || !yields(p.snapshot, u, r) || p.waits(other, place) {
					continue
				}
				if !yield(place.Node, r) {
					return
				}
			}
		}
	}
}

// waits says whether a pod is bound to a node where it waits for the volume's holders at another node.
func (p *planning) waits(u ledger.User, place *ledger.VolumeOnNode) bool {
	if u.Pod == "" || p.migratesTo(place) {
		return false
	}
	w := evaluation{arbiter: p.Arbiter, snapshot: p.snapshot, request: requestOf(p.snapshot, u), node: place.Node, now: p.now, yielded: true}
	has := w.has(p.volume)
	return has != "" && has != place.Node
}

// unproved: volumesAttached may be older than an unanswered report of this or the last leader. Only a read,
// or a write on that version, proves a volume without VolumeAttachments absent. An unmanaged node ignores
// volumesAttached.
func (p *planning) unproved(place *ledger.VolumeOnNode) bool {
	if !p.volume.ID.NoAttach() || !place.WithoutAttachment() || p.Cooperative || place.Proof.Stage != ledger.ProofNone {
		return false
	}
	n := p.snapshot.Node(place.Node)
	return n == nil || !n.Exists || n.Managed
}

// mayBeAttached, for ledger.Detached: a ticket was not told yet that the volume may be attached again.
func (p *planning) mayBeAttached(place *ledger.VolumeOnNode) bool {
	if place.Node == ledger.Detached {
		return p.inhabited(place)
	}
	if place.Sent {
		return true
	}
	if place.HasAttachments() || place.Reported {
		return true
	}
	if p.unproved(place) {
		return p.evidenceOf(p.snapshot, p.volume, place, p.now).usage != usageFenced
	}
	// In use without an attachment: a kubelet waits for it, or the volume is mounted all the same. A volume
	// that needs no attachment is at its hold's node until the kubelet or a rule of force says otherwise.
	if !place.MayBeInUse() && !place.WithoutAttachment() || !unused(p.snapshot, place) {
		return false
	}
	usage := p.evidenceOf(p.snapshot, p.volume, place, p.now).usage
	return usage != usageFenced && usage != usageNone
}

// best is the first in rank of the living users elsewhere than not.
func (p *planning) best(not ledger.NodeName) (ledger.User, ledger.NodeName) {
	var who ledger.User
	var at ledger.NodeName
	var first Request
	for i := range p.volume.OnNodes {
		place := &p.volume.OnNodes[i]
		if place.Node == not || !p.required || fenced(p.snapshot, p.volume, place.Node, p.now) {
			continue
		}
		for _, u := range place.Users {
			if claimStateOf(p.snapshot, u) != active {
				continue
			}
			if r := requestOf(p.snapshot, u); at == "" || p.compareClaims(claim{u, place.Node, r}, claim{who, at, first}) < 0 {
				who, at, first = u, place.Node, r
			}
		}
	}
	return who, at
}

// living says whether a user at a node claims the volume and will stay.
func (p *planning) living(place *ledger.VolumeOnNode) bool {
	if place == nil || !p.required || fenced(p.snapshot, p.volume, place.Node, p.now) {
		return false
	}
	for _, u := range place.Users {
		if claimStateOf(p.snapshot, u) == active && !p.outranked(u, place.Node) {
			return true
		}
	}
	return false
}

// awaits plans a check for the next step of a rule of force. While the time stands still, the next step may
// be imminent.
func (p *planning) awaits(f forcing) {
	if f.Left > 0 {
		p.recheck(min(f.Left, max(f.Step-f.Elapsed%f.Step, minWait)))
	}
}

// elsewhere is where else an exclusive volume may be. A live migration's target and the holder's node don't
// block each other; a third node does.
func (p *planning) elsewhere(n, holder ledger.NodeName) []Reason {
	if !p.exclusive {
		return nil
	}
	target := n != holder && p.migratesTo(p.volume.OnNode(n))
	reasons := alone(p.snapshot, p.volume, n, p.now)
	for i := range p.volume.OnNodes {
		other := &p.volume.OnNodes[i]
		if other.Node == n || !p.mayBeAttached(other) || target && other.Node == holder || !target && p.migratesTo(other) {
			continue
		}
		p.awaits(force(p.snapshot, p.volume, other, p.now))
		reasons = append(reasons, p.stuck(other))
	}
	return reasons
}

// stuck is stuckAt, and plans a check for when the driver's patience ends.
func (p *planning) stuck(place *ledger.VolumeOnNode) Reason {
	reason := stuckAt(p.Arbiter, p.snapshot, p.volume, place, p.now)
	if since, leaving := p.snapshot.Leaving(place); leaving && reason.Code == Detaching {
		p.recheck(detachPatience - p.now.Sub(since))
	}
	if left := untilUnexplained(p.volume, place, p.now); reason.Code == InUse && left > 0 && Unexplained(p.snapshot, place) {
		p.recheck(left)
	}
	return reason
}

func (p *planning) inline() bool {
	for i := range p.volume.OnNodes {
		for _, u := range p.volume.OnNodes[i].Users {
			pod := p.snapshot.Pod(u.Pod)
			if pod == nil {
				continue
			}
			for _, v := range pod.Volumes {
				if v.Inline == p.volume.ID {
					return true
				}
			}
		}
	}
	return false
}

// lasts says whether the volume has a source that is not being deleted.
func (p *planning) lasts() bool {
	pv := source(p.snapshot, p.volume)
	return pv != nil && !pv.Deleting || p.inline()
}

// inhabited: a pod was bound past all rules, so that the safe detach would put the volume back; or a
// granted ticket was not told of its loss, and no kubelet knows its use.
func (p *planning) inhabited(place *ledger.VolumeOnNode) bool {
	if !p.required || fenced(p.snapshot, p.volume, place.Node, p.now) {
		return false
	}
	return slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		if t := p.snapshot.Ticket(u.Ticket); u.Pod == "" {
			return t != nil && t.Phase == ledger.TicketGranted
		}
		return claimStateOf(p.snapshot, u) >= terminating
	})
}

// awaited says whether an undecided ticket asks for the volume in its place and no user asks for it
// elsewhere: once granted, the ticket finds the volume there.
func (p *planning) awaited(node *ledger.Node, place *ledger.VolumeOnNode) bool {
	if !p.required || !ready(node) || p.sought(p.hold, place) {
		return false
	}
	return slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return claimStateOf(p.snapshot, u) == requested && !p.snapshot.Ticket(u.Ticket).Waits()
	})
}

// delayed is how long an unwanted volume stays at its node: the policy's detachDelay, unless its detach is
// urgent.
func (p *planning) delayed(h ledger.Hold, node *ledger.Node, place *ledger.VolumeOnNode) time.Duration {
	policy := policyOf(p.snapshot, p.volume)
	since, _ := p.snapshot.Idle(place)
	left := policy.DetachDelay - p.now.Sub(since)
	va := p.own(place)
	if left <= 0 || va == nil || va.Deleting || p.urgent(h, node, place) {
		return 0
	}
	return left
}

// sought says whether an exclusive volume must leave a place for another by the planned hold, or any volume
// because it goes away.
func (p *planning) sought(h ledger.Hold, place *ledger.VolumeOnNode) bool {
	return p.exclusive && (h.Next.Node != "" || h.Node != place.Node) || !p.lasts()
}

// urgent says whether an unwanted volume must leave its node without delay: a user wants it, the node has
// no spare slot, is not ready or is being drained, or the volume goes away.
func (p *planning) urgent(h ledger.Hold, node *ledger.Node, place *ledger.VolumeOnNode) bool {
	return !ready(node) || node.Draining || !p.required || p.sought(h, place) || p.released() || noSpareSlot(p.snapshot, node.Driver(p.volume.ID.Driver))
}

// released: without a claim no user returns, and a provisioner deletes the volume only after its detach
// (external-provisioner).
func (p *planning) released() bool {
	claimed := false
	for _, name := range p.volume.PVs() {
		pv := p.snapshot.PersistentVolume(name)
		if pv == nil || pv.Claim.Name == "" {
			continue
		}
		if c := p.snapshot.Claim(pv.Claim); c != nil && !pv.IsAnothers(*c) {
			return false
		}
		claimed = true
	}
	return claimed
}
