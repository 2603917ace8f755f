// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"iter"
	"slices"
)

// together is what the attachments of a volume say taken together. It is worked out once
// in a Next, so that what is decided on each of them costs no look at all others: a shared
// volume may have thousands.
type together struct {
	// exclusive says whether the volume may be at one node at a time: if any of
	// its attachments says so. (Two PersistentVolumes may name one volume and
	// disagree.)
	exclusive bool
	// called are the nodes for which a call is under way, or among the steps.
	called map[string]bool
	// holders and contenders are, of an exclusive volume, those at whose nodes it may
	// be, and those that want it, in the order in which they get it.
	holders, contenders []*record
	// users are the attachments that have the volume and are to keep it, the first
	// of each place, and strangers those whose volume nobody can tell and that may have
	// this one: nil as long as nobody has asked.
	users     map[place]*record
	strangers []*record
}

// each goes through records, and counts them: what a Next costs is how many it looks at.
func (b *Book) each(records iter.Seq[*record]) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for r := range records {
			b.looked++
			if !yield(r) {
				return
			}
		}
	}
}

// survey works out what the volume's attachments say together.
func (p *pass) survey() {
	p.called = map[string]bool{}
	for r := range p.each(slices.Values(p.v.records)) {
		p.exclusive = p.exclusive || r.Exclusive
		if r.running.Call() {
			p.called[r.Node] = true
		}
	}
	if !p.exclusive {
		return
	}
	for r := range p.each(slices.Values(p.v.records)) {
		if r.maybe() {
			p.holders = append(p.holders, r)
		}
		if p.contends(r) {
			p.contenders = append(p.contenders, r)
		}
	}
	slices.SortFunc(p.contenders, firstServed)
}
