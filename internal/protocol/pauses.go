// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Pauses keeps each unfinished step's failures and pause. The volume's other steps continue. Its methods
// are serial.
type Pauses struct {
	spread Spread
	steps  map[ledger.VolumeID]map[stepKey]*stepPause
}

// stepKey names the step that an attempt counts for.
type stepKey struct {
	do   rules.Kind
	node ledger.NodeName
	uid  string
}

func keyOf(s rules.Step) stepKey { return stepKey{s.Kind, s.Node, s.UID} }

// stepPause is one step's pause.
//
//	Invariant: running ⇒ an attempt is under way
type stepPause struct {
	attempts Attempts
	until    time.Time // zero: try it
	running  bool
	news     bool // another cause changed something since the decision
}

// NewPauses returns empty Pauses. spread shortens each pause.
func NewPauses(spread Spread) *Pauses {
	return &Pauses{spread: spread, steps: map[ledger.VolumeID]map[stepKey]*stepPause{}}
}

// News ends the pauses of a volume's steps after a change by other causes. Earlier failures still count for
// the next pause.
func (p *Pauses) News(id ledger.VolumeID) {
	for _, step := range p.steps[id] {
		step.until, step.news = time.Time{}, true
	}
}

// Decide must be called before the snapshot for a volume's next steps is taken: later news is news to them.
func (p *Pauses) Decide(id ledger.VolumeID) {
	for _, step := range p.steps[id] {
		step.news = step.news && step.running
	}
}

// Due returns a volume's planned steps that may be tried now, and the time until the next; 0: none. It
// forgets unplanned steps without a pause.
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

// Len is the number of volumes with steps.
func (p *Pauses) Len() int { return len(p.steps) }

// Begin notes the begin of an attempt.
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

// End notes an attempt's end, and returns the time until a retry: 0 if it finished, else at least a moment.
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

// moment is the time before the next check of a key that need not wait.
const moment = time.Millisecond

func (p *Pauses) forget(id ledger.VolumeID, key stepKey) {
	delete(p.steps[id], key)
	if len(p.steps[id]) == 0 {
		delete(p.steps, id)
	}
}
