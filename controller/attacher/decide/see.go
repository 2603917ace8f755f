// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"time"
)

// See takes an attachment's state, and returns the volumes for new decisions. The caller holds back
// outdated states.
func (b *Tracker) See(a Attachment, now time.Time) []VolumeID {
	r := b.records[a.UID]
	if r == nil {
		return b.meet(a, now)
	}
	if r.gone {
		return nil
	}
	if a.Volume == "" {
		// Once known, the volume stays known: an attachment's source never changes.
		a.Volume, a.Exclusive = r.Volume, r.Exclusive
	}
	if a.Deleting {
		b.notFull(r)
	}
	if a.Deleting && !r.Deleting {
		b.press.leave(r)
	}
	r.learn(&a)
	before, after := key(&r.Attachment), key(&a)
	if before == after {
		r.Attachment = a
		return []VolumeID{after}
	}
	var waiting []VolumeID
	if r.Name != b.attachmentName(after, r.Node) { // else no other volume waits for it
		waiting = b.matchByName(r)
	}
	b.unlink(r)
	r.Attachment = a
	b.link(r)
	b.inherit(r)
	return append(waiting, before, after)
}

func (b *Tracker) meet(a Attachment, now time.Time) []VolumeID {
	r := &record{Attachment: a, watched: !a.Deleting, evidence: Unknown}
	if !a.Stamped && !a.Attached {
		r.evidence = Absent // nobody publishes before the finalizer is on
	}
	r.doubted = r.evidence == Unknown && !a.Attached
	b.records[a.UID] = r
	b.link(r)
	b.inherit(r)
	return []VolumeID{key(&a)}
}

func (r *record) learn(a *Attachment) {
	switch {
	case a.Deleting && !r.Deleting:
		r.succeed()
	case a.Mark != r.Mark, a.TargetID != r.TargetID, a.NoPublish != r.NoPublish, a.NoUnpublish != r.NoUnpublish:
		r.until = time.Time{} // the obstacle may be gone
	}
	switch a.NodeID {
	case r.sentID:
		r.sentID = "" // our own write, perhaps without an answer
	case r.NodeID:
	default:
		if r.NodeID != "" {
			r.atID = "" // a person knows better
		}
		r.until = time.Time{}
	}
	foreign := a.Stamped && !r.Stamped && r.running != Stamp || a.Attached && !r.Attached
	if foreign && r.evidence == Absent {
		r.evidence, r.proved, r.doubted = Unknown, false, true
	}
}

// inherit takes over the knowledge of gone attachments of the volume at this node.
func (b *Tracker) inherit(heir *record) {
	for _, ghost := range slices.Clone(b.volumes[key(&heir.Attachment)].records) {
		if ghost.gone && ghost.running == 0 && ghost.with(heir) {
			b.bequeath(ghost, heir)
		}
	}
}

func (b *Tracker) bequeath(ghost, heir *record) {
	if ghost.maybe() {
		heir.left = heir.left || ghost.left || ghost.known()
		heir.doubted, heir.proved = true, false
		heir.atID = ghost.volumeID() // the node may be another machine by then
		if heir.evidence == Absent {
			heir.evidence = Unknown
		}
	}
	b.drop(ghost)
}

// Lose takes an attachment's end. Its remains stay until an unpublish or a new attachment there.
func (b *Tracker) Lose(uid string, now time.Time) []VolumeID {
	r := b.records[uid]
	if r == nil || r.gone {
		return nil
	}
	r.gone, r.goneAt = true, now
	r.succeed()
	b.notFull(r)
	b.press.leave(r)
	touched := append(b.matchByName(r), key(&r.Attachment))
	b.dropForgotten(r)
	return touched
}

// matchByName are volumes that wait for an attachment of an unknown volume with their name.
func (b *Tracker) matchByName(r *record) []VolumeID {
	if r.Volume != "" {
		return nil
	}
	var ids []VolumeID
	for id := range b.volumes {
		b.looked++
		if r.Name == b.attachmentName(id, r.Node) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (b *Tracker) dropForgotten(r *record) {
	if !r.gone || r.running != 0 {
		return
	}
	if !r.maybe() || !b.rules.Publishes || r.volumeID() == "" {
		b.drop(r)
		return
	}
	for _, heir := range b.volumes[key(&r.Attachment)].records {
		if !heir.gone && r.with(heir) {
			b.bequeath(r, heir)
			return
		}
	}
}

// Sighted takes an entry of the driver's list: whether the volume is at the attachment's node. After a
// later call it means nothing.
func (b *Tracker) Sighted(uid string, published bool, asOf time.Time) []VolumeID {
	r := b.records[uid]
	if r == nil || r.gone || r.running.Call() || !r.lastCall.Before(asOf) {
		return nil
	}
	r.sight = missing
	if published {
		r.sight = there
		if !r.Attached && !r.Deleting {
			r.until = time.Time{}
		}
	}
	return []VolumeID{key(&r.Attachment)}
}
