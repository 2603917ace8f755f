// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"iter"
	"slices"
)

// together combines the facts of a volume's attachments, once in a Next: a shared volume may have
// thousands.
type together struct {
	// exclusive: some attachment says one node at a time. (A volume's PersistentVolumes may disagree.)
	exclusive bool
	// newest is the highest number of transitions of existing attachments, and ended ones with an open
	// place.
	newest int64
	// former is a gone attachment with that number, if no existing one has it.
	former *record
	called map[string]bool
	// contenders want an exclusive volume, in order of their turns.
	contenders []*record
	// users have and keep the volume, the first of each place; nil until asked for.
	users map[place]*record
}

// each counts the records that it yields: their number is the cost of a Next.
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
