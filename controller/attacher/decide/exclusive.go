// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// blocker is another attachment with a node where an exclusive volume may be.
func (p *pass) blocker(r *record) *record {
	if !p.exclusive {
		return nil
	}
	for other := range p.each(slices.Values(p.v.records)) {
		if other.maybe() && apart(r, other) {
			return other
		}
	}
	// The name of an attachment says its volume after its PersistentVolume is gone.
	var first *record
	for other := range p.each(maps.Values(p.unplaced)) {
		if other.maybe() && apart(r, other) && other.Name == p.attachmentName(p.v.id, other.Node) &&
			(first == nil || compareRecords(other, first) < 0) {
			first = other
		}
	}
	return first
}

// adopt gives gone attachments of unseen PersistentVolumes to the exclusive volume of their names,
// once that is wanted at a node: their remains are undone as its own. Their PersistentVolume may
// never be seen: its disk can have come back under another name.
func (p *pass) adopt() {
	if len(p.contenders) == 0 {
		return
	}
	for r := range p.each(maps.Values(p.unplaced)) {
		if !r.gone || r.running != 0 || r.Name != p.attachmentName(p.v.id, r.Node) {
			continue
		}
		p.unlink(r)
		r.Volume, r.Exclusive, r.NoUnpublish, r.NeedsSecret = p.v.id, true, Reason{}, p.contenders[0].NeedsSecret
		p.link(r)
		p.count(r)
		p.dropForgotten(r)
	}
}

// attachmentName is the name that Kubernetes gives the attachment of a volume
// at a node.
func (b *Tracker) attachmentName(id VolumeID, node string) string {
	return ledger.AttachmentName(ledger.VolumeID{Driver: b.rules.Driver, Handle: string(id)}, ledger.NodeName(node))
}

// apart says whether two attachments of an exclusive volume exclude each
// other: they are of different places, and no live migration joins them.
func apart(a, b *record) bool {
	return !a.with(b) && !a.joins(b) && !b.joins(a)
}

// joins says whether an attachment was made for a live migration from another one. The source's
// name stays on the object, but means only the attachment from the time of its creation: a later
// attachment at the same node is no source.
func (r *record) joins(source *record) bool {
	return r.Beside == source.Node &&
		!source.Created.After(r.Created) && source.Transitions <= r.Transitions
}

// rival is the first attachment that an exclusive volume goes to before this one. To an outdated
// attachment any other is a rival.
func (p *pass) rival(r *record) *record {
	first := p.contender(r)
	if first == nil || !p.outdated(r) && firstServed(first, r) > 0 {
		return nil
	}
	return first
}

// contender is the first of the attachments that want an exclusive volume at another node.
func (p *pass) contender(r *record) *record {
	for other := range p.each(slices.Values(p.contenders)) {
		if apart(r, other) {
			return other
		}
	}
	return nil
}

// contends says whether an attachment wants the volume and could have it.
func (p *pass) contends(r *record) bool {
	if r.gone || r.Deleting {
		return false
	}
	return r.known() || !p.outdated(r) && r.unpublishable().IsZero()
}

// firstServed orders the attachments that want an exclusive volume: first its known or former
// place, then the newer transitions, then the older object. It is total: exactly one goes first.
func firstServed(a, b *record) int {
	if a.keeps() != b.keeps() {
		if a.keeps() {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.Transitions, a.Transitions), a.Created.Compare(b.Created), compareRecords(a, b))
}
