// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"time"
)

// ErrStale: a precondition did not hold, and nothing was written. Decide anew: the ledger knows the change,
// or will in a moment.
var ErrStale = errors.New("the facts have changed")

// AttemptEnd is the end of an attempt that returned err.
func AttemptEnd(err error) End {
	switch {
	case err == nil:
		return Finished
	case errors.Is(err, ErrStale):
		return Stale
	}
	return Failed
}

// Spread shortens a pause by chance, by a quarter at most, so that common failures are not retried
// together.
type Spread func(pause time.Duration) time.Duration

// The pauses after failures, and after attempts on old facts, whose retry should succeed. Each doubles from
// the first to the longest.
const (
	firstFailed, longestFailed = 200 * time.Millisecond, time.Minute
	firstStale, longestStale   = 2 * time.Millisecond, 5 * time.Second
)

// Attempts counts the unfinished attempts since the last finished one. Its methods are serial.
type Attempts struct{ failed, stale int }

// Fail counts an attempt that ended as Stale or Failed, and returns the next pause. A stale attempt is no
// failure.
func (a *Attempts) Fail(end End, spread Spread) time.Duration {
	count, first, longest := &a.failed, firstFailed, longestFailed
	if end == Stale {
		count, first, longest = &a.stale, firstStale, longestStale
	}
	*count++
	return spread(min(first<<min(*count-1, 20), longest))
}

// Sooner returns the shorter of two durations; 0 stands for never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
