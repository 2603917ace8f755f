// SPDX-License-Identifier: Apache-2.0

package decide

import "time"

// Backoff is how long failed steps wait before they are tried again.
type Backoff struct {
	// First is the wait after the first failure, and at least this long after
	// any; it doubles with each further one, up to Max.
	First, Max time.Duration
}

// jitterShare of a wait is added at random: simultaneous failures are tried again at different
// times.
const jitterShare = 0.2

// After is the wait after a number of failures in a row, at least one, given a
// random number in [0,1).
func (b Backoff) After(failures int, random float64) time.Duration {
	wait := b.First
	for range failures - 1 {
		wait = min(2*wait, b.Max)
	}
	return wait + time.Duration(random*jitterShare*float64(wait))
}
