// SPDX-License-Identifier: Apache-2.0

package ledger

import "iter"

// UnderWay are the VolumeAttachments of a volume at a node, mostly one, that an attacher has still to attach
// or to detach, and of which it has not said that this failed.
type UnderWay struct {
	Volume      VolumeID
	Node        NodeName
	Attachments int // above 0
}

// volumeAt is a volume at a node.
type volumeAt struct {
	volume VolumeID
	node   NodeName
}

func (u *UnderWay) key() volumeAt { return volumeAt{u.Volume, u.Node} }

func (at volumeAt) hash() uint64 { return hashStrings(at.volume.Handle, string(at.node)) }

// UnderWay lists what has begun to be attached or detached, and has neither ended nor failed, in no order.
func (s Snapshot) UnderWay() iter.Seq[*UnderWay] { return s.facts.underWay.all() }

// UnderWayOf counts that by driver.
func (s Snapshot) UnderWayOf() map[string]int {
	count := map[string]int{}
	for u := range s.UnderWay() {
		count[u.Volume.Driver] += u.Attachments
	}
	return count
}

// underWay says whether an attachment is under way.
func (r *attachmentRecord) underWay() bool {
	if r.deleting {
		return r.odd == nil || r.odd.detachError.IsZero()
	}
	return !r.attached && (r.odd == nil || r.odd.attachError.IsZero())
}

// countUnderWay counts an attachment among those that are under way, by 1 when it comes and by -1 when it
// goes.
func (l *Ledger) countUnderWay(r *attachmentRecord, by int) {
	if r == nil || !r.underWay() {
		return
	}
	is := UnderWay{r.at(), r.to.node, by}
	if was := l.facts.underWay.get(is.key()); was != nil {
		is.Attachments += was.Attachments
	}
	if is.Attachments == 0 {
		l.facts.underWay.del(l.gen, is.key())
		return
	}
	l.facts.underWay.put(l.gen, is.key(), &is)
}
