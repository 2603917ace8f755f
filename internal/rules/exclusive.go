// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// evaluation is one request, of a scheduler or in the decision on a ticket.
type evaluation struct {
	arbiter  Arbiter
	snapshot ledger.Snapshot
	request  Request
	node     ledger.NodeName
	now      time.Time
	// queue is set while a pending ticket is decided on.
	queue *Queue
	// places: a node is being chosen for a ticket. The first ticket in rank ignores users that only ask,
	// the second waits only for the first, and so on.
	places bool
	// detached: unused volumes at the node count as detached.
	detached bool
	// yielded: tickets that yield to a pod have let go. If false, a pod waits for them.
	yielded bool
}

// blocks says whether another user keeps an exclusive volume from the request.
func (w evaluation) blocks(v *ledger.Volume, p *ledger.VolumeOnNode, u ledger.User) bool {
	if w.request.owns(u) {
		return false
	}
	switch claimStateOf(w.snapshot, u) {
	case active:
		return !w.takesFrom(u) && !fenced(w.snapshot, v, p.Node, w.now)
	case requested:
		t := w.snapshot.Ticket(u.Ticket)
		if t.InDoubt {
			return true // in any rank: an earlier leader may have granted it
		}
		if w.queue != nil && p.Node != w.node || !contends(t) || excludes(w.snapshot, v, p.Node) || fenced(w.snapshot, v, p.Node, w.now) {
			return false // in a queue, firstElsewhereOf checks other nodes' tickets
		}
		return CompareRequests(requestOf(w.snapshot, u), w.request) < 0
	case noClaim, terminating:
	}
	return false
}

// takesFrom says whether the request may have a granted ticket's volume: a ticket at once, a pod after the
// other has let go.
func (w evaluation) takesFrom(u ledger.User) bool {
	return yields(w.snapshot, u, w.request) && (w.yielded || !w.request.ofPod())
}

// migratable says whether the driver can have a volume at two nodes, and the volume is not for a single
// pod.
func migratable(s ledger.Snapshot, v *ledger.Volume) bool {
	return policyOf(s, v).LiveMigration && v.Access != ledger.AccessPod
}

// migration says whether the request is a live migration of a migratable volume.
func (w evaluation) migration(v *ledger.Volume) bool {
	return w.request.Type.SharesVolume() && migratable(w.snapshot, v)
}

// migrating says whether a user is a live migration that may have the volume at a second node.
func migrating(s ledger.Snapshot, v *ledger.Volume, u ledger.User) bool {
	t := s.Ticket(u.Ticket)
	return t != nil && t.Type.SharesVolume() && claimStateOf(s, u) == active && migratable(s, v)
}

// mayFollowMigration: pods and migrations may use a volume at a migration's target. Another ticket would
// lose it at the migration's end.
func (r Request) mayFollowMigration() bool { return r.ofPod() || r.Type.SharesVolume() }

// underMigration says whether a live migration may have a volume at a second node. Fit says at which node.
func underMigration(s ledger.Snapshot, v *ledger.Volume) bool {
	for i := range v.OnNodes {
		if migratesTo(s, v, &v.OnNodes[i]) {
			return true
		}
	}
	return false
}

// target says whether a live migration lets a volume be at the node besides another. A migration that the
// hold names elsewhere counts as granted.
func (w evaluation) target(v *ledger.Volume) bool {
	if !w.request.mayFollowMigration() {
		return false
	}
	here, elsewhere := w.request.Type.SharesVolume(), false
	for i := range v.OnNodes {
		if v.OnNodes[i].OnlyAsked { // no ticket there has a promise
			continue
		}
		for _, u := range v.OnNodes[i].Users {
			n := v.OnNodes[i].Node
			if w.request.owns(u) || !migrating(w.snapshot, v, u) {
				continue
			}
			here, elsewhere = here || n == w.node, elsewhere || n != w.node
		}
	}
	return here && !elsewhere && migratable(w.snapshot, v) // last, since most expensive
}

// otherTargets: a second live migration waits for the end of the first, at any node. Otherwise the volume
// would be at three nodes.
func (w evaluation) otherTargets(v *ledger.Volume, need Need, code ledger.Code) []Reason {
	var reasons []Reason
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		for _, u := range p.Users {
			if p.Node != w.node && !w.request.owns(u) && migrating(w.snapshot, v, u) {
				reasons = append(reasons, w.heldBy(v, p, u, need.Name, code))
			}
		}
	}
	return reasons
}

// free lists the users that keep an exclusive volume from the request. Without living users elsewhere the
// volume is promised to the request, and follows after its detach.
func (w evaluation) free(v *ledger.Volume, need Need) []Reason {
	a := access(w.snapshot, v, need.Access)
	if !exclusive(a) && w.node == ledger.Detached {
		a = ledger.AccessNode // of all that share it
	}
	if !exclusive(a) {
		return w.keptFrom(v, need)
	}
	code := HeldElsewhere
	if a == ledger.AccessPod {
		code = UsedByOtherPod
	}
	if v == nil {
		return w.tried(need, a, code)
	}
	if w.target(v) || w.migration(v) {
		if kept := w.keptFrom(v, need); len(kept) > 0 {
			return kept
		}
	}
	if w.target(v) {
		return w.heldBack(v, need)
	}
	if w.migration(v) {
		return w.otherTargets(v, need, code)
	}
	reasons, passed := w.others(v, a, need, code)
	if passed && len(reasons) == 0 {
		reasons = w.heldBack(v, need)
	}
	return append(reasons, w.tried(need, a, code)...)
}

// others lists the users, and the attachments unknown to Moorage, that keep an exclusive volume from the
// node. passed: a user elsewhere was passed over, that asks or waits away from the holders' node. A ticket
// granted elsewhere may be promised the volume, and is first told that it is not.
func (w evaluation) others(v *ledger.Volume, a ledger.Access, need Need, code ledger.Code) (reasons []Reason, passed bool) {
	rooted := a != ledger.AccessPod && w.lives(v, v.OnNode(w.node))
	has := w.has(v)
	for _, reason := range alone(w.snapshot, v, w.node, w.now) {
		reason.Claim = need.Name
		reasons = append(reasons, reason)
	}
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		if p.Node == w.node && a != ledger.AccessPod {
			continue
		}
		if p.OnlyAsked && p.Node != w.node { // these don't contend
			passed = passed || rooted
			continue
		}
		before := len(reasons)
		for _, u := range w.queue.blockers(p, w.request) {
			if len(reasons) >= fewUsers {
				return reasons, passed // the rest adds nothing
			}
			w.queue.look()
			st := claimStateOf(w.snapshot, u)
			waits := u.Pod != "" && st == active && has != "" && p.Node != has && !migratesTo(w.snapshot, v, p) && !reserved(w.snapshot, u)
			if waits || rooted && (st == requested || migrating(w.snapshot, v, u)) {
				passed = true
			} else if w.blocks(v, p, u) {
				reasons = append(reasons, w.heldBy(v, p, u, need.Name, code))
			}
		}
		if p.Node != w.node && w.request.Pod != "" && len(reasons) == before && unawaited(p) && !w.lets(p) {
			reason := stuckAt(w.arbiter, w.snapshot, v, p, w.now) // a ticket there that would yield, else the detach
			reason.Claim = need.Name
			reasons = append(reasons, reason)
		}
		if p.Node != w.node && foreign(p) {
			reasons = append(reasons, Reason{Code: ForeignAttachment, Volume: v.ID, Claim: need.Name, Node: p.Node, Detail: p.Canonical().Name})
		}
	}
	return reasons, passed
}

// lets says whether a ticket at a place lets go of the volume for the request. The volume is then detached.
func (w evaluation) lets(p *ledger.VolumeOnNode) bool {
	return w.yielded && slices.ContainsFunc(p.Users, func(u ledger.User) bool {
		return claimStateOf(w.snapshot, u) == active && yields(w.snapshot, u, w.request)
	})
}

// unawaited: kube-controller-manager would attach the volume elsewhere before its detach here, since
// Moorage attached it for a ticket in Cooperative mode.
func unawaited(p *ledger.VolumeOnNode) bool {
	va := p.Own()
	return va != nil && va.Cooperative && !p.Reported
}

// reserved says whether a user is a pod with this process's Binding, unsent or in flight.
func reserved(s ledger.Snapshot, u ledger.User) bool {
	p := s.Pod(u.Pod)
	return p != nil && p.Reserved
}

// has is the node whose living users keep an exclusive volume from the request: the hold's, or without a
// hold the node where it is attached.
func (w evaluation) has(v *ledger.Volume) ledger.NodeName {
	if at := hold(v).Node; at != "" {
		if w.lives(v, v.OnNode(at)) {
			return at
		}
		return ""
	}
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		if (p.HasAttachments() || p.Reported) && w.lives(v, p) {
			return p.Node
		}
	}
	return ""
}

// heldBack: if a user elsewhere was passed over, the users here may wait themselves, as a pod bound past a
// live migration's hold does. The own pod's places elsewhere don't count. Grant asks with the grant in the
// snapshot.
func (w evaluation) heldBack(v *ledger.Volume, need Need) []Reason {
	if w.queue != nil || !v.ID.IsReal() {
		return nil
	}
	s := w.snapshot
	if w.request.Pod != "" {
		d := s.Delta().Clone()
		if d == nil {
			d = &ledger.Delta{}
		}
		d.Remove(w.request.Pod)
		s = s.With(d)
	}
	if reason, kept := w.arbiter.planner(s, v, w.now).heldBack(w.request, w.node, need.Name); kept {
		return []Reason{reason}
	}
	return nil
}

// lives says whether another user has an exclusive volume at a node and will stay.
func (w evaluation) lives(v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	return p != nil && slices.ContainsFunc(w.queue.blockers(p, w.request), func(u ledger.User) bool {
		return claimStateOf(w.snapshot, u) == active && w.blocks(v, p, u)
	})
}

func (w evaluation) heldBy(v *ledger.Volume, p *ledger.VolumeOnNode, u ledger.User, name string, code ledger.Code) Reason {
	reason := Reason{Code: code, Volume: v.ID, Claim: name, Node: p.Node, Who: requester(w.snapshot, u)}
	if code == HeldElsewhere && hold(v).Next.Node == p.Node {
		reason.Detail = onlyPromised
	}
	return reason.named(w.snapshot)
}

// tried counts the pods of a dry run with the same volume.
func (w evaluation) tried(need Need, a ledger.Access, code ledger.Code) []Reason {
	d := w.snapshot.Delta()
	if d == nil {
		return nil
	}
	var reasons []Reason
	for _, uid := range d.AddedPods() {
		node := d.Added[uid]
		if len(reasons) >= fewUsers || uid == w.request.Pod || node == w.node && a != ledger.AccessPod || !wants(w.snapshot, uid, need.Volume) {
			continue
		}
		who := requester(w.snapshot, ledger.User{Pod: uid})
		reasons = append(reasons, Reason{Code: code, Volume: need.Volume, Claim: need.Name, Node: node, Who: who})
	}
	return reasons
}

// wants says whether a pod, bound or not, refers to a volume.
func wants(s ledger.Snapshot, uid string, v ledger.VolumeID) bool {
	p := s.Pod(uid)
	if p == nil {
		return false
	}
	for _, pv := range p.Volumes {
		if id, _ := s.ResolvePod(p, pv); id == v {
			return true
		}
	}
	return false
}

// foreign says whether all attachments have names that Moorage would not give.
func foreign(p *ledger.VolumeOnNode) bool { return p.HasAttachments() && !p.HasOwn() }

// access: if the hold gives a volume to one node, pods that name it inline can't share it.
func access(s ledger.Snapshot, v *ledger.Volume, need ledger.Access) ledger.Access {
	a := told(v, need)
	if !exclusive(a) && (keptDetached(s, v) || keptByHold(s, v)) {
		return ledger.AccessNode
	}
	return a
}

// keptDetached says whether a granted ticket keeps a volume from every node. A shared volume then has one
// holder.
func keptDetached(s ledger.Snapshot, v *ledger.Volume) bool {
	place := v.KeptDetached()
	return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
		return claimStateOf(s, u) == active
	})
}

// told is access by the PersistentVolumes or the pods. need counts without them.
func told(v *ledger.Volume, need ledger.Access) ledger.Access {
	if v != nil && v.ID.IsReal() && (v.Access != ledger.AccessUnknown || len(v.OnNodes) > 0) {
		return v.Access
	}
	return need
}

// keptByHold says whether a hold keeps a volume at one node although pods name it inline and would share
// it: an object, now perhaps gone, made it exclusive. The hold counts while the volume may be at its node,
// or its named users are there.
func keptByHold(s ledger.Snapshot, v *ledger.Volume) bool {
	if v == nil || !v.OnlyInline() || hold(v).Node == "" {
		return false
	}
	place := v.OnNode(hold(v).Node)
	return place != nil && (place.OccupiesSlot() || place.WithoutAttachment() ||
		slices.ContainsFunc(place.Users, func(u ledger.User) bool { return namedInHold(s, v, u) }))
}

// namedInHold says whether the written hold gives the volume to a user.
func namedInHold(s ledger.Snapshot, v *ledger.Volume, u ledger.User) bool {
	who := requester(s, u)
	return v.Hold != nil && (v.Hold.Next.To.UID == who.UID || slices.ContainsFunc(v.Hold.Requesters, func(r ledger.Requester) bool { return r.UID == who.UID }))
}

// exclusive: a volume may be at one node only, unless it is known to be shared.
func exclusive(a ledger.Access) bool {
	return a != ledger.AccessMany
}

// alone gives a reason for each node, except not, where only moorage-node says that a volume is mounted:
// the kubelet has forgotten it. It goes nowhere else until that report ends or a rule of force overrides
// it. After a forced take in the hold the node is not asked again.
func alone(s ledger.Snapshot, v *ledger.Volume, not ledger.NodeName, now time.Time) []Reason {
	var reasons []Reason
	for _, name := range s.MountedAlone(v.ID) {
		n := s.Node(name)
		_, taken := v.Hold.Fence(name)
		if name == not || taken || len(reasons) >= fewUsers || !n.SaysHas(v.ID) || fenced(s, v, name, now) {
			continue
		}
		reason := Reason{Code: StagedAtNode, Volume: v.ID, Claim: claimOf(s, v), Node: name}
		if unresponsive(n, now) {
			reason.Detail = oldWord
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

// Arrives says whether an exclusive volume only has to be brought to its user: a Ready node has a user, and
// no other node has it attached or reported. Volumes in a dead node's last volumesInUse stay.
func Arrives(s ledger.Snapshot, v *ledger.Volume) bool {
	if v == nil || !exclusive(v.Access) {
		return false
	}
	awaited := false
	for i := range v.OnNodes {
		place := &v.OnNodes[i]
		switch va := place.Own(); {
		case !ready(s.Node(place.Node)) || !slices.ContainsFunc(place.Users, func(u ledger.User) bool { return claimStateOf(s, u) == active }):
			if place.HasAttachments() || place.Reported {
				return false
			}
		case va == nil || !va.Attached || !place.Reported:
			awaited = true
		}
	}
	return awaited
}
