// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
)

// Limit is how many calls a driver is given at a time. It starts wide, grows
// while the driver keeps up, and halves when the driver pushes back: additive
// increase, multiplicative decrease, as in TCP. A driver that answers late has a
// queue of its own, and more calls would only wait there until they time out: then
// it does not grow. Its methods are serial.
//
// Invariant: floor <= size <= most.
type Limit struct {
	floor, most int
	// late is how long a call of a driver that keeps up takes at most.
	late  time.Duration
	size  float64
	inUse int
	// opening: nothing has pushed back yet, and each success adds one: twice as
	// many with each round of calls.
	opening bool
	cutAt   time.Time
}

// The first limit, and the one below which pushing back does not bring it:
// external-attacher has ten workers, whatever its driver says.
const (
	firstLimit = 256
	floorLimit = 10
	// lateShare of a call's timeout is late.
	lateShare = 2
)

// NewLimit returns a limit of most calls, at least one, which time out after a
// time, more than 0 s.
func NewLimit(most int, timeout time.Duration) (*Limit, error) {
	if most < 1 {
		return nil, errors.New("the driver must be given at least one call at a time")
	}
	if timeout <= 0 {
		return nil, errors.New("the driver must be given some time for a call")
	}
	return &Limit{floor: min(floorLimit, most), most: most, late: timeout / lateShare, size: float64(min(firstLimit, most)), opening: true}, nil
}

// Size is the limit at this moment.
func (l *Limit) Size() int { return int(l.size) }

// InUse is the number of calls under way.
func (l *Limit) InUse() int { return l.inUse }

// Take takes a call's place, if there is one.
func (l *Limit) Take() bool {
	if l.inUse >= l.Size() {
		return false
	}
	l.inUse++
	return true
}

// Free gives the place of a call back and learns from how it ended: began is
// when it was started, again that the volume's last call failed as well. Calls
// that were under way when the limit was cut say nothing new, and a volume
// that fails over and over says something of itself, not of the driver.
func (l *Limit) Free(code codes.Code, again bool, began, now time.Time) {
	grows := 2*l.inUse >= l.Size() && now.Sub(began) <= l.late
	l.inUse--
	switch {
	case code == codes.OK && grows && l.opening:
		l.size = min(l.size+1, float64(l.most))
	case code == codes.OK && grows:
		l.size = min(l.size+1/l.size, float64(l.most))
	case PushesBack(code) && !again && began.After(l.cutAt):
		l.size = max(l.size/2, float64(l.floor))
		l.opening, l.cutAt = false, now
	}
}

// PushesBack says whether a code is how a driver says that it has too much to
// do.
func PushesBack(c codes.Code) bool {
	switch c {
	case codes.ResourceExhausted, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
		return true
	}
	return false
}
