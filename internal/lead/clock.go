// SPDX-License-Identifier: Apache-2.0

package lead

import "time"

// clock uses two clocks. On a suspended machine the monotonic clock may stand still while the lease runs
// out; the wall clock catches up, but may be put back.
type clock struct {
	now  func() time.Time // monotonic, for comparisons
	wall func() time.Time // without one
}

func realClock() clock {
	return clock{time.Now, func() time.Time { return time.Now().Round(0) }}
}

// left is the time until an end by the stricter clock; 0 or less: over.
func (c clock) left(end time.Time) time.Duration {
	return min(end.Sub(c.now()), end.Round(0).Sub(c.wall()))
}
