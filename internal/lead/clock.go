// SPDX-License-Identifier: Apache-2.0

package lead

import "time"

// clock tells the time in two ways. On a suspended machine the monotonic clock may stand still, while
// the leader's lease there runs out and another process takes it; the wall clock is put right after
// that. The wall clock alone may be put back.
type clock struct {
	now  func() time.Time // with a monotonic reading, which comparisons use
	wall func() time.Time // without one
}

func realClock() clock {
	return clock{time.Now, func() time.Time { return time.Now().Round(0) }}
}

// left is the time until an end, by the clock with less; 0 or less when it is over by either.
func (c clock) left(end time.Time) time.Duration {
	return min(end.Sub(c.now()), end.Round(0).Sub(c.wall()))
}
