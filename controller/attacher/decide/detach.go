// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"
)

// detach decides if the attachment is being deleted. The first rule that applies decides.
func (p *pass) detach(r *record) move {
	if !r.Stamped && (!r.Kept || !r.Attached && r.sight != there && !r.maybe()) {
		return move{} // our finalizer is off, and the volume is not here
	}
	if r.proved && r.sight != there || r.mayStay() && p.stays(r) {
		return p.finish(r)
	}
	if other := p.usedHere(r); other != nil {
		return move{after: missingGrace, why: Reason{Message: fmt.Sprintf(
			"the volume stays at node %s: VolumeAttachment %s wants it there", r.Node, other.Name)}}
	}
	if why := r.undetachable(); !why.IsZero() {
		return move{why: why, after: missingGrace}
	}
	if m, ok := p.backoff(r, true); ok {
		return m
	}
	if p.rules.Looks && r.Wanted && r.watched && !r.doubted && r.sight == unseen && !r.looked {
		return p.call(r, Look, r.volumeID())
	}
	return p.call(r, Unpublish, r.volumeID())
}

// finish ends a deletion by one write. A foreign finalizer may keep the object.
func (p *pass) finish(r *record) move {
	if m, ok := p.backoff(r, true); ok && (r.failedAction == Release || r.failedAction == MarkDetached) {
		return m
	}
	switch {
	case r.Stamped:
		return do(Release)
	case r.proved:
		return do(MarkDetached)
	}
	return move{}
}

// stays: the volume is wanted again here, no call is under way, and no other node waits.
func (p *pass) stays(r *record) bool {
	return !p.busy(r) && !p.outdated(r) && p.contender(r) == nil
}

func (r *record) undetachable() Reason {
	if !r.NoUnpublish.IsZero() {
		return r.NoUnpublish
	}
	if r.volumeID() == "" {
		return r.NoTarget
	}
	return Reason{}
}

// usedHere is another attachment that keeps the volume at the node: an unpublish would hit it too. The
// asking attachment is being deleted, or gone.
func (p *pass) usedHere(r *record) *record {
	if p.users == nil {
		p.users = map[place]*record{}
		for other := range p.each(slices.Values(p.v.records)) {
			if at := other.place(); p.users[at] == nil && other.uses() {
				p.users[at] = other
			}
		}
	}
	return p.users[r.place()]
}

func (r *record) uses() bool { return !r.Deleting && !r.gone && r.maybe() }

// ghost decides on a deleted object's volume that may still be at its node. The volume is unpublished when
// another node wants it, or after a while without a user here.
func (p *pass) ghost(r *record) move {
	if !r.NoUnpublish.IsZero() || p.usedHere(r) != nil {
		return move{}
	}
	if due := r.goneAt.Add(ghostGrace); due.After(p.now) && p.contender(r) == nil {
		return move{wake: due}
	}
	if m, ok := p.backoff(r, true); ok {
		return m
	}
	return p.call(r, Unpublish, r.volumeID())
}
