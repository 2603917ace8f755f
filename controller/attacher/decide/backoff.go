// SPDX-License-Identifier: Apache-2.0

package decide

import "time"

// Backoff is how long failed steps wait for the next try.
type Backoff struct {
	// First is the minimal wait; it doubles with each failure in a row, up to Max.
	First, Max time.Duration
}

// jitterShare of a wait is added at random, to spread simultaneous failures.
const jitterShare = 0.2

// After is the wait after failures in a row, at least one; random is in [0,1).
func (b Backoff) After(failures int, random float64) time.Duration {
	wait := b.First
	for range failures - 1 {
		wait = min(2*wait, b.Max)
	}
	return wait + time.Duration(random*jitterShare*float64(wait))
}
