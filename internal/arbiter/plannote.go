// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"github.com/moorage-dev/moorage/internal/ledger"
)

// A shared volume is held by nobody, and has a VolumeHold only while there is
// something to say: that it waits at a node that does not answer, and how far
// the rule of force has come, so that another controller goes on from there.

// decideNote plans the write of what a shared volume's hold is to say, and its
// end when there is nothing to say any more.
func (p *planner) decideNote(was ledger.Hold) {
	place := p.overdue()
	if place == nil {
		if was.Version != "" && was.Force.Rule != "" && was.Transitions == 0 {
			p.add(Step{Do: DeleteHold, Expect: was.Version})
		}
		return
	}
	if was.Version != "" && was.Force.Rule == "" && was.Transitions > 0 {
		return // from when it was exclusive: that stays as it is
	}
	stuck := stuckAt(p.Arbiter, p.s, p.v, place, p.now)
	note := ledger.Hold{
		Version: was.Version, Transitions: was.Transitions, PVs: p.v.PVs(),
		State: ledger.HoldDetachPending, Reason: stuck.Code, Message: stuck.Message(),
	}
	p.clock(&note, place)
	if !sameHold(was, note) {
		p.add(Step{Do: WriteHold, Hold: note, Expect: was.Version})
	}
}

// overdue is the place that a shared volume is to leave and whose time for a
// forced detach has run longest. It is the one that is kept: should the leader
// change, the time of any other starts over.
func (p *planner) overdue() *ledger.Place {
	var best *ledger.Place
	var longest forcing
	for i := range p.v.Places {
		place := &p.v.Places[i]
		if p.wanted(place) || !p.physical(place) {
			continue
		}
		if stuckAt(p.Arbiter, p.s, p.v, place, p.now).Code != NodeUnreachable {
			continue
		}
		if f := force(p.s, p.v, place, p.now); f.Rule != "" && f.Left > 0 && (best == nil || f.Elapsed > longest.Elapsed) {
			best, longest = place, f
		}
	}
	return best
}
