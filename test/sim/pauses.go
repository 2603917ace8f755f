// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// pauses are the pauses of volumes' steps that failed, as data: those of
// controller/attachment. Each is the longest that a real one would be.
type pauses map[stepKey]*stepPause

// stepKey names the step of a volume's plans to which an attempt counts.
type stepKey struct {
	volume ledger.VolumeID
	do     arbiter.Action
	node   ledger.NodeName
	uid    string
}

func keyOf(s arbiter.Step) stepKey { return stepKey{s.Volume, s.Do, s.Node, s.UID} }

// stepPause is one step's: how often it failed in a row.
type stepPause struct {
	failed, stale int
	until         time.Time // zero: it may be tried
	running       bool
	news          bool // something else has changed since the attempt was decided on
}

// news ends the pauses of a volume's steps: something has changed that they did not
// change themselves.
func (p pauses) news(v ledger.VolumeID) {
	for key, k := range p {
		if key.volume == v {
			k.until, k.news = time.Time{}, true
		}
	}
}

// due returns the planned steps of a volume that may be tried now, and after how long
// the first of the others may be; 0 without any. It forgets steps that are not planned
// any more.
func (p pauses) due(v ledger.VolumeID, planned []arbiter.Step, now time.Time) (due []arbiter.Step, wait time.Duration) {
	is := map[stepKey]bool{}
	for _, step := range planned {
		key := keyOf(step)
		is[key] = true
		if k := p[key]; k == nil || !now.Before(k.until) {
			due = append(due, step)
		} else {
			wait = sooner(wait, k.until.Sub(now))
		}
	}
	for key, k := range p {
		switch {
		case key.volume != v:
		case is[key], k.running, now.Before(k.until):
			k.news = k.news && k.running
		default:
			delete(p, key)
		}
	}
	return due, wait
}

// begin notes that an attempt at a step begins.
func (p pauses) begin(step arbiter.Step) {
	if p[keyOf(step)] == nil {
		p[keyOf(step)] = &stepPause{}
	}
	p[keyOf(step)].running = true
}

// end notes what came of it, and returns for how long the step pauses; 0: it did not
// fail.
func (p pauses) end(step arbiter.Step, err error, now time.Time) time.Duration {
	k := p[keyOf(step)]
	k.running = false
	var long time.Duration
	switch {
	case err == nil:
		delete(p, keyOf(step))
		return 0
	case errors.Is(err, errStale):
		long = stalePause(k.stale)
		k.stale++
	default:
		long = failedPause(k.failed)
		k.failed++
	}
	if k.news {
		return time.Millisecond
	}
	k.until = now.Add(long)
	return long
}

// stalePause and failedPause are after how long what failed so often before is tried
// again.
func stalePause(times int) time.Duration {
	return min(2*time.Millisecond<<min(times, 20), 5*time.Second)
}

func failedPause(times int) time.Duration {
	return min(200*time.Millisecond<<min(times, 20), time.Minute)
}

// sooner returns the shorter of two durations, of which 0 stands for never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
