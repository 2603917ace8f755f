// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// view is one request looked at from one side: a scheduler that looks for a
// node, or a ticket that is decided on.
type view struct {
	arbiter  Arbiter
	snapshot ledger.Snapshot
	request  Request
	node     ledger.NodeName
	now      time.Time
	// queue: a pending ticket is decided on; nil else.
	queue *Queue
	// places: a node is chosen for a ticket. The one that ranks first goes after
	// nobody who merely asks, the second only after the first, and so all of them come to rest.
	places bool
	// detached: what nobody needs at the node any more counts as detached.
	detached bool
	// yielded: tickets that yield to a pod have let go. Where it is false, a pod waits until they have.
	yielded bool
}

// blocks says whether another user keeps the request away from an exclusive
// volume.
func (w view) blocks(v *ledger.Volume, p *ledger.NodeVolume, u ledger.User) bool {
	if w.request.owns(u) {
		return false
	}
	switch claimStateOf(w.snapshot, u) {
	case active:
		return !w.takesFrom(u) && !fenced(w.snapshot, v, p.Node, w.now)
	case requested:
		t := w.snapshot.Ticket(u.Ticket)
		if t.InDoubt {
			return true // in any order of rank: an earlier leader may have granted it
		}
		if w.queue != nil && p.Node != w.node || !contends(t) || excludes(w.snapshot, v, p.Node) || fenced(w.snapshot, v, p.Node, w.now) {
			return false // in a queue firstElsewhereOf sees to the tickets of other nodes
		}
		return CompareRequests(requestOf(w.snapshot, u), w.request) < 0
	case noClaim, terminating:
	}
	return false
}

// takesFrom says whether the request may have what a granted ticket has: a ticket gets it at once, and the other
// is asked to let go then; a pod gets it when the other has let go.
func (w view) takesFrom(u ledger.User) bool {
	return yields(w.snapshot, u, w.request) && (w.yielded || !w.request.ofPod())
}

// migratable says whether the driver can have a volume at two nodes, and the
// volume is not for a single pod.
func migratable(s ledger.Snapshot, v *ledger.Volume) bool {
	return policyOf(s, v).LiveMigration && v.Access != ledger.AccessPod
}

// migration says whether the request is a live migration of a volume that can be
// at two nodes.
func (w view) migration(v *ledger.Volume) bool {
	return w.request.Type.SharesVolume() && migratable(w.snapshot, v)
}

// migrating says whether a user is a live migration that may have the volume
// at a second node.
func migrating(s ledger.Snapshot, v *ledger.Volume, u ledger.User) bool {
	t := s.Ticket(u.Ticket)
	return t != nil && t.Type.SharesVolume() && claimStateOf(s, u) == active && migratable(s, v)
}

// mayFollowMigration says whether who asks may have a volume at the node to which it migrates,
// beside the one that it comes from: pods and migrations. Any other ticket would lose it when
// the migration ends.
func (r Request) mayFollowMigration() bool { return r.ofPod() || r.Type.SharesVolume() }

// underMigration says whether a live migration may have a volume at a second
// node, which node is for Fit to say.
func underMigration(s ledger.Snapshot, v *ledger.Volume) bool {
	for i := range v.NodeVolumes {
		if migratesTo(s, v, &v.NodeVolumes[i]) {
			return true
		}
	}
	return false
}

// target says whether a volume may be at the node besides another one because
// of a live migration: the request's, if no other node is the target of one,
// or one that is granted there. At another node one that the hold names counts
// as granted.
func (w view) target(v *ledger.Volume) bool {
	if !w.request.mayFollowMigration() {
		return false
	}
	here, elsewhere := w.request.Type.SharesVolume(), false
	for i := range v.NodeVolumes {
		if v.NodeVolumes[i].OnlyAsked { // no ticket there has a promise
			continue
		}
		for _, u := range v.NodeVolumes[i].Users {
			n := v.NodeVolumes[i].Node
			if w.request.owns(u) || !migrating(w.snapshot, v, u) {
				continue
			}
			here, elsewhere = here || n == w.node, elsewhere || n != w.node
		}
	}
	return here && !elsewhere && migratable(w.snapshot, v) // last, since it costs most
}

// otherTargets says to which other nodes a volume migrates, or may be about to: a
// second live migration waits for the first one to end, whoever has the volume at
// its node. Otherwise the volume would be at the holder's node and at two more.
func (w view) otherTargets(v *ledger.Volume, need Need, code ledger.Code) []Reason {
	var reasons []Reason
	for i := range v.NodeVolumes {
		p := &v.NodeVolumes[i]
		for _, u := range p.Users {
			if p.Node != w.node && !w.request.owns(u) && migrating(w.snapshot, v, u) {
				reasons = append(reasons, w.heldBy(v, p, u, need.Name, code))
			}
		}
	}
	return reasons
}

// free says what keeps an exclusive volume, which a need is for, from the request: somebody living
// elsewhere, or for a volume of one pod, anywhere. A place elsewhere that
// nobody living claims does not: the volume is promised to the request, and
// follows when the old node has let go.
func (w view) free(v *ledger.Volume, need Need) []Reason {
	a := access(w.snapshot, v, need.Access)
	if !exclusive(a) && w.node == ledger.Detached {
		a = ledger.AccessNode // of however many share it
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

// others says who keeps an exclusive volume from the node, and what attachment that
// Moorage can't place; and whether anybody who wants it elsewhere was passed over:
// who asks for it at a node other than the one where others have it, and pods that are
// bound to such a node and merely wait there for those who have it. A ticket that is
// granted elsewhere may be promised the volume, and is told first that it is not.
func (w view) others(v *ledger.Volume, a ledger.Access, need Need, code ledger.Code) (reasons []Reason, passed bool) {
	rooted := a != ledger.AccessPod && w.lives(v, v.NodeVolume(w.node))
	has := w.has(v)
	for _, reason := range alone(w.snapshot, v, w.node, w.now) {
		reason.Claim = need.Name
		reasons = append(reasons, reason)
	}
	for i := range v.NodeVolumes {
		p := &v.NodeVolumes[i]
		if p.Node == w.node && a != ledger.AccessPod {
			continue
		}
		if p.OnlyAsked && p.Node != w.node { // none of them contends
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

// lets says whether a ticket at a place is taken to let go of the volume, which is detached then.
func (w view) lets(p *ledger.NodeVolume) bool {
	return w.yielded && slices.ContainsFunc(p.Users, func(u ledger.User) bool {
		return claimStateOf(w.snapshot, u) == active && yields(w.snapshot, u, w.request)
	})
}

// unawaited says whether kube-controller-manager would attach a volume elsewhere without waiting
// until it is detached from a node: Moorage attached it in Cooperative mode, for a ticket.
func unawaited(p *ledger.NodeVolume) bool {
	va := p.Own()
	return va != nil && va.Cooperative && !p.Reported
}

// reserved says whether a user is a pod whose Binding this process has yet to send, or may still be under way.
func reserved(s ledger.Snapshot, u ledger.User) bool {
	p := s.Pod(u.Pod)
	return p != nil && p.Reserved
}

// has is the node that has an exclusive volume, if others live there whom the request
// can't take it from: the node that the hold names, or without a hold the one where
// the volume is attached. Of users at several nodes only those there have it.
func (w view) has(v *ledger.Volume) ledger.NodeName {
	if at := hold(v).Node; at != "" {
		if w.lives(v, v.NodeVolume(at)) {
			return at
		}
		return ""
	}
	for i := range v.NodeVolumes {
		p := &v.NodeVolumes[i]
		if (p.HasAttachments() || p.Reported) && w.lives(v, p) {
			return p.Node
		}
	}
	return ""
}

// heldBack says what else keeps an exclusive volume from the node, where somebody
// elsewhere was passed over for the sake of those who are there: they may wait for
// it themselves, as does a pod that was bound past a live migration which holds
// the volume. What the request's own pod has elsewhere does not count. Grant asks
// by itself, with the grant in the snapshot.
func (w view) heldBack(v *ledger.Volume, need Need) []Reason {
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

// lives says whether another user has an exclusive volume at a node and will
// stay.
func (w view) lives(v *ledger.Volume, p *ledger.NodeVolume) bool {
	return p != nil && slices.ContainsFunc(w.queue.blockers(p, w.request), func(u ledger.User) bool {
		return claimStateOf(w.snapshot, u) == active && w.blocks(v, p, u)
	})
}

// heldBy is the reason that somebody claims a volume.
func (w view) heldBy(v *ledger.Volume, p *ledger.NodeVolume, u ledger.User, name string, code ledger.Code) Reason {
	reason := Reason{Code: code, Volume: v.ID, Claim: name, Node: p.Node, Who: requester(w.snapshot, u)}
	if code == HeldElsewhere && hold(v).Next.Node == p.Node {
		reason.Detail = onlyPromised
	}
	return reason.named(w.snapshot)
}

// tried counts the pods that a dry run tries with the same volume.
func (w view) tried(need Need, a ledger.Access, code ledger.Code) []Reason {
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

// foreign says whether a NodeVolume is bound by an attachment that Moorage can't
// place, and by no own one: it has not the name that volume and node lead to.
func foreign(p *ledger.NodeVolume) bool { return p.HasAttachments() && !p.HasOwn() }
