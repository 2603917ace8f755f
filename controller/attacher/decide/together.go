// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"iter"
	"slices"
)

// together has the combined facts of a volume's attachments. A Next computes it once, to spare each
// decision a look at all others: a shared volume may have thousands.
type together struct {
	// exclusive: some attachment says that the volume may be at one node at a time. (Two
	// PersistentVolumes may name one volume and disagree.)
	exclusive bool
	// newest is the highest number of transitions of the existing attachments, and of ended ones that left
	// the volume's place open.
	newest int64
	// former is a gone attachment with that number, if no existing one has it.
	former *record
	// called are the nodes with a call under way, or among the steps.
	called map[string]bool
	// contenders are the attachments that want an exclusive volume, in order of their turns.
	contenders []*record
	// users are the attachments that have the volume and keep it, the first of each place; nil until
	// asked for.
	users map[place]*record
}

// each goes through records, and counts them: their number is the cost of a Next.
func (b *Tracker) each(records iter.Seq[*record]) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for r := range records {
			b.looked++
			if !yield(r) {
				return
			}
		}
	}
}

// count takes an attachment's number of transitions into account.
func (t *together) count(r *record) {
	switch {
	case r.Transitions > t.newest:
		t.newest, t.former = r.Transitions, nil
		if r.gone {
			t.former = r
		}
	case r.Transitions == t.newest && !r.gone:
		t.former = nil
	}
}

// survey works out what the volume's attachments say together.
func (p *pass) survey() {
	p.called = map[string]bool{}
	for r := range p.each(slices.Values(p.v.records)) {
		p.exclusive = p.exclusive || r.Exclusive
		p.count(r)
		if r.running.Call() {
			p.called[r.Node] = true
		}
	}
	if !p.exclusive {
		return
	}
	for r := range p.each(slices.Values(p.v.records)) {
		if p.contends(r) {
			p.contenders = append(p.contenders, r)
		}
	}
	slices.SortFunc(p.contenders, firstServed)
}
