// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// view is one request looked at from one side: a scheduler that looks for a
// node, or the controller that grants.
type view struct {
	a   Arbiter
	s   ledger.Snapshot
	r   Request
	n   ledger.NodeName
	now time.Time
	// granting: tickets that are not granted count only when they rank before
	// this one. A scheduler counts them all: who asked first comes first.
	granting bool
}

// claims says whether another user keeps the request away from an exclusive
// volume.
func (w view) claims(v *ledger.Volume, p *ledger.Place, u ledger.User) bool {
	if w.r.owns(u) {
		return false
	}
	switch stand(w.s, u) {
	case living, haunting:
		return !yields(w.s, u, w.r) && !fenced(w.s, v, p.Node, w.now) //mutant:take-from-the-living
	case asking:
		return !excludes(w.s, v, p.Node) && !fenced(w.s, v, p.Node, w.now) && (!w.granting || CompareRequests(requestOf(w.s, u), w.r) < 0)
	case gone, leaving:
	}
	return false
}

// promised says whether the hold as written gives the volume to the request,
// though it is not granted yet.
func (w view) promised(v *ledger.Volume) bool {
	if v.Hold == nil {
		return false
	}
	if v.Hold.Next.To.UID == w.r.Who.UID {
		return true
	}
	return v.Hold.Node == w.n && slices.ContainsFunc(v.Hold.Requesters, func(r ledger.Requester) bool { return r.UID == w.r.Who.UID })
}

// migratable says whether the driver can have a volume at two nodes, and the
// volume is not for a single pod.
func migratable(s ledger.Snapshot, v *ledger.Volume) bool {
	return policyOf(s, v).LiveMigration && v.Access != ledger.AccessPod
}

// migration says whether the request is a live migration of a volume that can be
// at two nodes.
func (w view) migration(v *ledger.Volume) bool {
	return w.r.Type.Beside() && migratable(w.s, v)
}

// migrating says whether a user is a live migration that may have the volume
// at a second node.
func migrating(s ledger.Snapshot, v *ledger.Volume, u ledger.User) bool {
	t := s.Ticket(u.Ticket)
	return u.Pod == "" && t != nil && t.Type.Beside() && stand(s, u) == living && migratable(s, v)
}

// migrationNamed says whether a user is a live migration that is not granted yet,
// and that the hold as written names: its grant may be on its way.
func migrationNamed(s ledger.Snapshot, v *ledger.Volume, u ledger.User) bool {
	t := s.Ticket(u.Ticket)
	if u.Pod != "" || t == nil || !t.Type.Beside() || stand(s, u) != asking || !migratable(s, v) {
		return false
	}
	return named(s, v, u)
}

// underMigration says whether a live migration may have a volume at a second
// node, which node is for Fit to say.
func underMigration(s ledger.Snapshot, v *ledger.Volume) bool {
	for i := range v.Places {
		if migratesTo(s, v, &v.Places[i]) {
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
	if !migratable(w.s, v) {
		return false
	}
	here, elsewhere := w.r.Type.Beside(), false
	for i := range v.Places {
		for _, u := range v.Places[i].Users {
			n, granted := v.Places[i].Node, migrating(w.s, v, u)
			if w.r.owns(u) || !granted && (n == w.n || !migrationNamed(w.s, v, u)) {
				continue
			}
			here, elsewhere = here || n == w.n, elsewhere || n != w.n
		}
	}
	return here && !elsewhere
}

// otherTargets says to which other nodes a volume migrates, or may be about to: a
// second live migration waits for the first one to end, whoever has the volume at
// its node. Otherwise the volume would be at the holder's node and at two more.
func (w view) otherTargets(v *ledger.Volume, need Need, code ledger.Code) []Reason {
	var reasons []Reason
	for i := range v.Places {
		p := &v.Places[i]
		for _, u := range p.Users {
			if p.Node != w.n && !w.r.owns(u) && (migrating(w.s, v, u) || migrationNamed(w.s, v, u)) {
				reasons = append(reasons, w.heldBy(v, p, u, need.Name, code))
			}
		}
	}
	return reasons
}

// access is how many a volume may serve, with the policy's word on volumes
// whose PersistentVolume names no access mode. need is the claim's own word,
// for a volume that does not exist yet.
func access(s ledger.Snapshot, v *ledger.Volume, need ledger.Access) ledger.Access {
	a := need
	if v != nil && v.ID.IsReal() && v.Access != ledger.AccessUnknown {
		a = v.Access
	}
	if a == ledger.AccessUnset && v != nil && policyOf(s, v).EmptyIsExclusive {
		return ledger.AccessNode
	}
	return a
}

// exclusive says whether a volume may be at one node only. What isn't known
// to be shared is exclusive.
func exclusive(a ledger.Access) bool {
	return a != ledger.AccessMany && a != ledger.AccessUnset
}

// free says what keeps an exclusive volume from the request: somebody living
// elsewhere, or for a volume of one pod, anywhere. A place elsewhere that
// nobody living claims does not: the volume is promised to the request, and
// follows when the old node has let go.
func (w view) free(need Need) []Reason {
	v := w.s.Volume(need.Volume)
	a := access(w.s, v, need.Access)
	if !exclusive(a) {
		return nil
	}
	code := HeldElsewhere
	if a == ledger.AccessPod {
		code = UsedByOtherPod
	}
	if v == nil {
		return w.tried(need, a, code)
	}
	if w.target(v) {
		return w.kept(v, need)
	}
	if w.migration(v) {
		return w.otherTargets(v, need, code)
	}
	reasons, passed := w.others(v, a, need, code)
	if passed && len(reasons) == 0 {
		reasons = w.kept(v, need)
	}
	return append(reasons, w.tried(need, a, code)...)
}

// others says who keeps an exclusive volume from the node, and what attachment that
// Moorage can't place; and whether anybody who wants it elsewhere was passed over:
// who asks for it at a node other than the one where others have it, and pods that are
// bound to such a node and merely wait there for those who have it. A ticket that is
// granted elsewhere may be promised the volume, and is told first that it is not.
func (w view) others(v *ledger.Volume, a ledger.Access, need Need, code ledger.Code) (reasons []Reason, passed bool) {
	rooted := a != ledger.AccessPod && w.lives(v, v.Place(w.n))
	has := w.has(v)
	for i := range v.Places {
		p := &v.Places[i]
		if p.Node == w.n && a != ledger.AccessPod {
			continue
		}
		for _, u := range p.Users {
			st := stand(w.s, u)
			waits := u.Pod != "" && st == living && has != "" && p.Node != has && !migratesTo(w.s, v, p)
			if waits || rooted && (st == asking || migrating(w.s, v, u)) {
				passed = true
			} else if w.claims(v, p, u) {
				reasons = append(reasons, w.heldBy(v, p, u, need.Name, code))
			}
		}
		if p.Node != w.n && foreign(p) {
			reasons = append(reasons, Reason{Code: ForeignAttachment, Volume: v.ID, Claim: need.Name, Node: p.Node, Detail: p.Canonical().Name})
		}
	}
	return reasons, passed
}

// has is the node that has an exclusive volume, if others live there whom the request
// can't take it from: the node that the hold names, or without a hold the one where
// the volume is attached. Of users at several nodes only those there have it.
func (w view) has(v *ledger.Volume) ledger.NodeName {
	at := hold(v).Node
	for i := range v.Places {
		p := &v.Places[i]
		if (at == p.Node || at == "" && (p.HasAttachments() || p.Reported)) && w.lives(v, p) {
			return p.Node
		}
	}
	return ""
}

// kept says what else keeps an exclusive volume from the node, where somebody
// elsewhere was passed over for the sake of those who are there: they may wait for
// it themselves, as does a pod that was bound past a live migration which holds
// the volume. What the request's own pod has elsewhere does not count. Grant asks
// by itself, with the grant in the snapshot.
func (w view) kept(v *ledger.Volume, need Need) []Reason {
	if w.granting || !v.ID.IsReal() {
		return nil
	}
	s := w.s
	if w.r.Pod != "" {
		d := s.Delta().Clone()
		if d == nil {
			d = &ledger.Delta{}
		}
		d.Remove(w.r.Pod)
		s = s.With(d)
	}
	if reason, kept := w.a.planner(s, v, w.now).kept(w.r, w.n, need.Name); kept {
		return []Reason{reason}
	}
	return nil
}

// lives says whether another user has an exclusive volume at a place and will
// stay.
func (w view) lives(v *ledger.Volume, p *ledger.Place) bool {
	return p != nil && slices.ContainsFunc(p.Users, func(u ledger.User) bool {
		return stand(w.s, u) == living && w.claims(v, p, u)
	})
}

// heldBy is the reason that somebody claims a volume. A promise that was made
// to the request before somebody came who ranks before it, or who has the right to
// it without asking, as a bound pod has, is given back: the request is denied, so
// that the other need not wait for it.
func (w view) heldBy(v *ledger.Volume, p *ledger.Place, u ledger.User, name string, code ledger.Code) Reason {
	if st := stand(w.s, u); w.granting && (st == asking || st == living) && w.promised(v) {
		code = Outranked
	}
	return Reason{Code: code, Volume: v.ID, Claim: name, Node: p.Node, Who: requester(w.s, u)}
}

// tried counts the pods that a dry run tries with the same volume.
func (w view) tried(need Need, a ledger.Access, code ledger.Code) []Reason {
	d := w.s.Delta()
	if d == nil {
		return nil
	}
	var reasons []Reason
	for uid, node := range d.Added {
		if uid == w.r.Pod || node == w.n && a != ledger.AccessPod || !wants(w.s, uid, need.Volume) {
			continue
		}
		who := requester(w.s, ledger.User{Pod: uid})
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

// foreign says whether a place is bound by an attachment that Moorage can't
// place, and by no own one: it has not the name that volume and node lead to.
func foreign(p *ledger.Place) bool { return p.HasAttachments() && !p.HasOwn() }
