// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Pauses keeps, for each unfinished step, how often in a row it did not finish, and until when it is
// not tried again. A step that is refused pauses by itself: the volume's other steps go on. Its methods
// are serial.
type Pauses struct {
	spread Spread
	steps  map[ledger.VolumeID]map[stepKey]*stepPause
}

// stepKey names the step of a volume's plans that an attempt counts for.
type stepKey struct {
	do   rules.Action
	node ledger.NodeName
	uid  string
}

func keyOf(s rules.Step) stepKey { return stepKey{s.Do, s.Node, s.UID} }

// stepPause is one step's.
//
//	Invariant: running ⇒ an attempt is under way
type stepPause struct {
	attempts Attempts
	until    time.Time // zero: it may be tried
	running  bool
	news     bool // something else has changed since the attempt was decided on
}

// NewPauses returns Pauses without any. spread shortens each.
func NewPauses(spread Spread) *Pauses {
	return &Pauses{spread: spread, steps: map[ledger.VolumeID]map[stepKey]*stepPause{}}
}

// News ends the pauses of a volume's steps, because something has changed by other causes. Earlier
// failures still count: after the next failure the pause is longer.
func (p *Pauses) News(id ledger.VolumeID) {
	for _, step := range p.steps[id] {
		step.until, step.news = time.Time{}, true
	}
}

// Decide is called before the snapshot is taken that the next steps of a volume
// are decided on: news from then on is news to them.
func (p *Pauses) Decide(id ledger.VolumeID) {
	for _, step := range p.steps[id] {
		step.news = step.news && step.running
	}
}

// Due returns the planned steps of a volume that may be tried now, and the time until the first of the
// others, 0 without any. It forgets the steps that are not planned any more and do not pause.
func (p *Pauses) Due(id ledger.VolumeID, planned []rules.Step, now time.Time) ([]rules.Step, time.Duration) {
	known := p.steps[id]
	if len(known) == 0 {
		return planned, 0
	}
	var due []rules.Step
	wait, is := time.Duration(0), map[stepKey]bool{}
	for _, step := range planned {
		key := keyOf(step)
		is[key] = true
		if k := known[key]; k == nil || !now.Before(k.until) {
			due = append(due, step)
		} else {
			wait = Sooner(wait, k.until.Sub(now))
		}
	}
	for key, k := range known {
		if !is[key] && !k.running && !now.Before(k.until) {
			p.forget(id, key)
		}
	}
	return due, wait
}

// Len is of how many volumes steps are kept.
func (p *Pauses) Len() int { return len(p.steps) }

// Begin notes that an attempt at a step begins.
func (p *Pauses) Begin(step rules.Step) {
	known := p.steps[step.Volume]
	if known == nil {
		known = map[stepKey]*stepPause{}
		p.steps[step.Volume] = known
	}
	k := known[keyOf(step)]
	if k == nil {
		k = &stepPause{}
		known[keyOf(step)] = k
	}
	k.running = true
}

// End notes how the attempt ended, and returns after how long the step may be tried
// again: 0 when it finished, else a moment at least, also where there is news.
func (p *Pauses) End(step rules.Step, end End, now time.Time) time.Duration {
	k := p.steps[step.Volume][keyOf(step)]
	if end == Finished {
		p.forget(step.Volume, keyOf(step))
		return 0
	}
	k.running = false
	left := k.attempts.Fail(end, p.spread)
	if k.news {
		return moment
	}
	k.until = now.Add(left)
	return left
}

// moment is after how long something is looked at again that need not wait.
const moment = time.Millisecond

func (p *Pauses) forget(id ledger.VolumeID, key stepKey) {
	delete(p.steps[id], key)
	if len(p.steps[id]) == 0 {
		delete(p.steps, id)
	}
}
