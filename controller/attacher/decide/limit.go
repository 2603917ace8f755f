// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
)

// Limit bounds a driver's simultaneous calls. It starts wide, grows while the driver keeps up, and
// halves when the driver pushes back: additive increase, multiplicative decrease, as in TCP. As in
// TCP, a limit that was cut far below the driver's earlier load doubles with each round of calls
// until it is near. A driver that answers late has a queue of its own, where more calls would only
// time out: the limit does not grow so far. Its methods are serial.
//
// Invariant: floor <= size <= most, floor <= brink <= most.
type Limit struct {
	floor, most int
	// late is how long a call of a driver that keeps up takes at most.
	late  time.Duration
	size  float64
	inUse int
	// quickest is the time of the quickest successful call since the driver was last idle, and
	// prompt the largest place of a hardly longer call: the driver carries out at least so many at
	// a time.
	quickest time.Duration
	prompt   int
	// brink is half the size that first made the driver push back. Up to it each success adds one: a round
	// of calls doubles the size, or more.
	brink float64
	cutAt time.Time
	// kept: the driver has kept up since the last cut. A driver that pushes back before that is
	// away, and its capacity is unknown.
	kept bool
}

// The first limit, and the lowest limit after push-backs: external-attacher has ten workers for any
// driver.
const (
	firstLimit = 256
	floorLimit = 10
	// lateShare of a call's timeout is late.
	lateShare = 2
	// A prompt answer takes at most the quickest time and that part of it again, and lets the limit
	// grow by promptStep.
	promptShare = 2
	promptStep  = 3
)

// Turn is a call's place in a Limit.
type Turn struct {
	// Began is when the call was started.
	Began time.Time
	// Place is the number of calls that were under way then, with this one.
	Place int
}

// NewLimit returns a limit of most calls, at least one, which time out after a
// time, more than 0 s.
func NewLimit(most int, timeout time.Duration) (*Limit, error) {
	if most < 1 {
		return nil, errors.New("the driver must be given at least one call at a time")
	}
	if timeout <= 0 {
		return nil, errors.New("the driver must be given some time for a call")
	}
	return &Limit{floor: min(floorLimit, most), most: most, late: timeout / lateShare, size: float64(min(firstLimit, most)), brink: float64(most), kept: true}, nil
}

// Size is the limit at this moment.
func (l *Limit) Size() int { return int(l.size) }

// InUse is the number of calls under way.
func (l *Limit) InUse() int { return l.inUse }

// Take takes a call's place, if there is one.
func (l *Limit) Take(now time.Time) (Turn, bool) {
	if l.inUse >= l.Size() {
		return Turn{}, false
	}
	if l.inUse == 0 {
		l.quickest, l.prompt = 0, 0
	}
	l.inUse++
	return Turn{now, l.inUse}, true
}

// Free gives the place of a call back and learns from its end; own: the end concerns its volume and
// not the driver. Calls from before the last cut give no news.
func (l *Limit) Free(turn Turn, code codes.Code, own bool, now time.Time) {
	took, fresh := now.Sub(turn.Began), turn.Began.After(l.cutAt)
	fills := 2*l.inUse >= l.Size()
	l.inUse--
	switch {
	case code == codes.OK:
		l.kept = l.kept || fresh
		if prompt := l.timed(turn, took); fills && took <= l.late && l.wait() <= l.late {
			l.grow(prompt)
		}
	case PushesBack(code) && !own && fresh:
		l.cut(now)
	}
}

func (l *Limit) grow(prompt bool) {
	by := 1 / l.size
	switch {
	case l.size < l.brink && prompt:
		by = promptStep
	case l.size < l.brink:
		by = 1
	}
	l.size = min(l.size+by, float64(l.most))
}

// timed says whether a call was answered about as quickly as any before: then the driver has no
// queue yet.
func (l *Limit) timed(turn Turn, took time.Duration) bool {
	if l.quickest == 0 || took < l.quickest {
		l.quickest = max(took, 1)
	}
	if took > l.quickest+l.quickest/promptShare {
		return false
	}
	l.prompt = max(l.prompt, turn.Place)
	return true
}

// wait is how long one call above the limit would take, by the driver's shown capacity.
func (l *Limit) wait() time.Duration {
	return time.Duration(float64(l.quickest) * l.size / float64(max(l.prompt, 1)))
}

func (l *Limit) cut(now time.Time) {
	l.size = max(l.size/2, float64(l.floor))
	if l.kept {
		l.brink = l.size
	}
	l.cutAt, l.kept = now, false
}

// PushesBack says whether a code means that the driver has too much to do.
func PushesBack(c codes.Code) bool {
	switch c {
	case codes.ResourceExhausted, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
		return true
	}
	return false
}
