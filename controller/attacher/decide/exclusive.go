// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"maps"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func (p *pass) blocker(r *record) *record {
	if !p.exclusive {
		return nil
	}
	for other := range p.each(slices.Values(p.v.records)) {
		if other.maybe() && apart(r, other) {
			return other
		}
	}
	// An attachment's name still tells its volume when its PersistentVolume is gone.
	var first *record
	for other := range p.each(maps.Values(p.unplaced)) {
		if other.maybe() && apart(r, other) && other.Name == p.attachmentName(p.v.id, other.Node) &&
			(first == nil || compareRecords(other, first) < 0) {
			first = other
		}
	}
	return first
}

// adopt gives gone attachments of unseen PersistentVolumes to the wanted exclusive volume of their names.
// Their PersistentVolume may never be seen: its disk can have come back under another name.
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

func (b *Tracker) attachmentName(id VolumeID, node string) string {
	return ledger.AttachmentName(ledger.VolumeID{Driver: b.rules.Driver, Handle: string(id)}, ledger.NodeName(node))
}

// apart: two attachments of an exclusive volume are at different places, and no live migration joins them.
func apart(a, b *record) bool {
	return !a.with(b) && !a.joins(b) && !b.joins(a)
}

// joins: the attachment was made for a live migration from source. A later attachment at the source node is
// no source.
func (r *record) joins(source *record) bool {
	return r.Beside == source.Node &&
		!source.Created.After(r.Created) && source.Transitions <= r.Transitions
}

// rival is the first attachment that gets an exclusive volume earlier: any other, for an outdated
// attachment.
func (p *pass) rival(r *record) *record {
	first := p.contender(r)
	if first == nil || !p.outdated(r) && firstServed(first, r) > 0 {
		return nil
	}
	return first
}

// contender is the first attachment that wants the exclusive volume at another node.
func (p *pass) contender(r *record) *record {
	for other := range p.each(slices.Values(p.contenders)) {
		if apart(r, other) {
			return other
		}
	}
	return nil
}

func (p *pass) contends(r *record) bool {
	if r.gone || r.Deleting {
		return false
	}
	return r.known() || !p.outdated(r) && r.unpublishable().IsZero()
}

// firstServed prefers the volume's known or former place, then newer transitions, then the older object.
// The order is total.
func firstServed(a, b *record) int {
	if a.keeps() != b.keeps() {
		if a.keeps() {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.Transitions, a.Transitions), a.Created.Compare(b.Created), compareRecords(a, b))
}
