// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
)

// Limit bounds a driver's simultaneous calls. It starts wide, grows while the driver keeps up, and halves
// when the driver pushes back, as in TCP. Far below the earlier load it doubles with each round. It stops
// growing when the driver answers late: more calls would only time out. Its methods are serial.
//
// Invariant: floor <= size <= most, floor <= brink <= most.
type Limit struct {
	floor, most int
	// late is the longest call of a driver that keeps up.
	late  time.Duration
	size  float64
	inUse int
	// quickest is the quickest successful call since the driver was idle. prompt is the largest place of a
	// hardly longer call: the driver handles that many at a time.
	quickest time.Duration
	prompt   int
	// brink is half the size of the first push-back. Up to it, each success adds one.
	brink float64
	cutAt time.Time
	// kept: the driver has kept up since the last cut. Otherwise a push-back means that it is away, with
	// unknown capacity.
	kept bool
}

// The first limit, and the lowest after push-backs: external-attacher has ten workers.
const (
	firstLimit = 256
	floorLimit = 10
	lateShare  = 2
	// A prompt answer takes at most the quickest time plus this part, and adds promptStep.
	promptShare = 2
	promptStep  = 3
)

// Turn is a call's place in a Limit.
type Turn struct {
	// Began is the call's start.
	Began time.Time
	// Place is the number of calls under way then, including this one.
	Place int
}

// NewLimit returns a limit; most is at least one, timeout above 0 s.
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

// InUse counts the calls under way.
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

// Free returns a call's place and learns from its end, except for calls from before the last cut. own: the
// end concerns the volume, not the driver.
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

// timed: the answer was about as quick as any before, and the driver has no queue.
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

// wait is a further call's wait, by the driver's shown capacity.
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

// PushesBack says whether a code means that the driver is overloaded.
func PushesBack(c codes.Code) bool {
	switch c {
	case codes.ResourceExhausted, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
		return true
	}
	return false
}
