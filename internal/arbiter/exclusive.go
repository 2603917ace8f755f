// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// view is one request looked at from one side: a scheduler that looks for a
// node, or the controller that grants.
type view struct {
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
	case living:
		return !yields(w.s, u, w.r) && !fenced(w.s, v, p.Node, w.now)
	case asking:
		return !w.granting || rank(requestOf(w.s, u), w.r) < 0
	}
	return false
}

// access is how many a volume may serve, with the policy's word on volumes
// whose PersistentVolume names no access mode. need is the claim's own word,
// for a volume that does not exist yet.
func access(s ledger.Snapshot, v *ledger.Volume, need ledger.Access) ledger.Access {
	a := need
	if v != nil && v.ID.IsReal() {
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
	if v == nil || !exclusive(a) {
		return nil
	}
	if w.r.Type == ledger.TypeLiveMigration && policyOf(w.s, v).LiveMigration {
		return nil
	}
	code := HeldElsewhere
	if a == ledger.AccessPod {
		code = UsedByOtherPod
	}
	var reasons []Reason
	for i := range v.Places {
		p := &v.Places[i]
		if p.Node == w.n && a != ledger.AccessPod {
			continue
		}
		for _, u := range p.Users {
			if w.claims(v, p, u) {
				reasons = append(reasons, Reason{Code: code, Volume: v.ID, Claim: need.Name, Node: p.Node, Who: requester(w.s, u)})
			}
		}
		if p.Node != w.n && foreign(v.ID, p) {
			reasons = append(reasons, Reason{Code: ForeignAttachment, Volume: v.ID, Claim: need.Name, Node: p.Node, Detail: p.Attachments[0].Name})
		}
	}
	return append(reasons, w.tried(v, need, a, code)...)
}

// tried counts the pods that a dry run tries with the same volume.
func (w view) tried(v *ledger.Volume, need Need, a ledger.Access, code ledger.Code) []Reason {
	d := w.s.Delta()
	if d == nil {
		return nil
	}
	var reasons []Reason
	for uid, node := range d.Added {
		if uid == w.r.Pod || node == w.n && a != ledger.AccessPod || !wants(w.s, uid, v.ID) {
			continue
		}
		who := requester(w.s, ledger.User{Pod: uid})
		reasons = append(reasons, Reason{Code: code, Volume: v.ID, Claim: need.Name, Node: node, Who: who})
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
// place: it has not the name that the volume and node lead to.
func foreign(v ledger.VolumeID, p *ledger.Place) bool {
	a := p.Canonical()
	return a != nil && !a.Ours && (!v.IsReal() || a.Name != ledger.AttachmentName(v, p.Node))
}
