// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/work"
)

// pauses keeps, for each step whose last attempt failed, how often it failed in a
// row and until when it is not tried again. A step that is refused pauses by itself:
// the volume's other steps go on. All methods are safe for parallel use.
type pauses struct {
	mu    sync.Mutex
	steps map[ledger.VolumeID]map[stepKey]*pause
}

// stepKey names the step of a volume's plans to which an attempt counts.
type stepKey struct {
	do   arbiter.Action
	node ledger.NodeName
	uid  string
}

func keyOf(s arbiter.Step) stepKey { return stepKey{s.Do, s.Node, s.UID} }

// pause is one step's.
//
//	Invariant: running ⇒ an attempt is under way
type pause struct {
	attempts work.Attempts
	until    time.Time // zero: it may be tried
	running  bool
	news     bool // something else has changed since the attempt was decided on
}

func newPauses() *pauses { return &pauses{steps: map[ledger.VolumeID]map[stepKey]*pause{}} }

// news ends the pauses of a volume's steps, because something has changed that
// they did not change themselves. What failed before still counts: should the next
// attempt fail as well, the pause after it is longer.
func (p *pauses) news(id ledger.VolumeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, step := range p.steps[id] {
		step.until, step.news = time.Time{}, true
	}
}

// decide is called before the snapshot is taken that the next steps of a volume
// are decided on: news from then on is news to them.
func (p *pauses) decide(id ledger.VolumeID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, step := range p.steps[id] {
		step.news = step.news && step.running
	}
}

// due returns the planned steps of a volume that may be tried now, and after how long
// the first of the others may be, 0 without any. It forgets the steps that are not
// planned any more and do not pause.
func (p *pauses) due(id ledger.VolumeID, planned []arbiter.Step, now time.Time) ([]arbiter.Step, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.steps[id]
	if len(known) == 0 {
		return planned, 0
	}
	var due []arbiter.Step
	wait, is := time.Duration(0), map[stepKey]bool{}
	for _, step := range planned {
		key := keyOf(step)
		is[key] = true
		if k := known[key]; k == nil || !now.Before(k.until) {
			due = append(due, step)
		} else {
			wait = sooner(wait, k.until.Sub(now))
		}
	}
	for key, k := range known {
		if !is[key] && !k.running && !now.Before(k.until) {
			p.forget(id, key)
		}
	}
	return due, wait
}

// begin notes that an attempt at a step begins.
func (p *pauses) begin(step arbiter.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.steps[step.Volume]
	if known == nil {
		known = map[stepKey]*pause{}
		p.steps[step.Volume] = known
	}
	k := known[keyOf(step)]
	if k == nil {
		k = &pause{}
		known[keyOf(step)] = k
	}
	k.running = true
}

// end notes what came of the attempt, and returns for how long the step pauses.
func (p *pauses) end(step arbiter.Step, err error, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.steps[step.Volume][keyOf(step)]
	if err == nil {
		p.forget(step.Volume, keyOf(step))
		return 0
	}
	k.running = false
	left := k.attempts.Fail(err)
	if k.news {
		return 0
	}
	k.until = now.Add(left)
	return left
}

// forget is called with mu held.
func (p *pauses) forget(id ledger.VolumeID, key stepKey) {
	delete(p.steps[id], key)
	if len(p.steps[id]) == 0 {
		delete(p.steps, id)
	}
}

// sooner returns the shorter of two durations, of which 0 stands for never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
