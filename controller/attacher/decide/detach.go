// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"slices"
)

// detach is the chain of an attachment that is being deleted. The first rule
// that applies decides.
func (p *pass) detach(r *record) move {
	if !r.Stamped && (!r.Kept || !r.Attached && r.sight != there && !r.maybe()) {
		return move{} // ours is off already, and the volume is not here
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

// finish ends a deletion by one write. The object is then gone, unless a foreign finalizer keeps it.
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

// stays says whether only its own deletion concerns a volume that is wanted again where it is: no
// call under way, and no other node waiting.
func (p *pass) stays(r *record) bool {
	return !p.busy(r) && !p.outdated(r) && p.contender(r) == nil
}

// undetachable says why an unpublish can't be put together.
func (r *record) undetachable() Reason {
	if !r.NoUnpublish.IsZero() {
		return r.NoUnpublish
	}
	if r.volumeID() == "" {
		return r.NoTarget
	}
	return Reason{}
}

// usedHere is another attachment at the same node that keeps the volume there: an unpublish would
// take it from that attachment also. The asking attachment is being deleted, or gone.
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

// uses says whether an attachment has the volume and keeps it.
func (r *record) uses() bool { return !r.Deleting && !r.gone && r.maybe() }

// ghost is the chain of an attachment with a deleted object and a volume that may still be at its
// node: its finalizer was taken off, or the volume was wanted again. It is unpublished when another
// node wants the volume, or after a while without a user here.
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
