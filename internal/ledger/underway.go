// SPDX-License-Identifier: Apache-2.0

package ledger

import "iter"

// underWay counts the VolumeAttachments of a driver that are under way.
//
//	Invariant: count is above 0
type underWay struct {
	driver string
	count  int
}

// underWay says whether an attacher has still to attach what an attachment asks for, or to detach
// it, and has not said that this failed.
func (r *attachmentRecord) underWay() bool {
	if r.deleting {
		return r.odd == nil || r.odd.detachError.IsZero()
	}
	return !r.attached && (r.odd == nil || r.odd.attachError.IsZero())
}

// UnderWay is how many attaches and detaches of a driver have begun, and have neither ended nor failed.
func (s Snapshot) UnderWay(driver string) int {
	if u := s.facts.underWay.get(driver); u != nil {
		return u.count
	}
	return 0
}

// AllUnderWay lists the drivers of which attaches or detaches are under way, and how many.
func (s Snapshot) AllUnderWay() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for u := range s.facts.underWay.all() {
			if !yield(u.driver, u.count) {
				return
			}
		}
	}
}

// countUnderWay counts an attachment among those of its driver that are under way, by 1 when it comes
// and by -1 when it goes.
func (l *Ledger) countUnderWay(r *attachmentRecord, by int) {
	if r == nil || !r.underWay() {
		return
	}
	is := underWay{driver: r.driver(), count: by}
	if was := l.facts.underWay.get(is.driver); was != nil {
		is.count += was.count
	}
	if is.count == 0 {
		l.facts.underWay.del(l.gen, is.driver)
		return
	}
	l.facts.underWay.put(l.gen, is.driver, &is)
}
