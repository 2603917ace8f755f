// SPDX-License-Identifier: Apache-2.0

package work

// fewKnown is how many are no reason to look which of them have gone.
const fewKnown = 128

// Sweep says when to look for known keys that have gone: when twice as many are known as were left the
// last time. Each is looked at a bounded number of times. The zero value is ready; not for parallel
// use.
type Sweep struct{ enough int }

// Due says whether to look now, where so many are known.
func (s *Sweep) Due(known int) bool { return known >= max(fewKnown, s.enough) }

// Left notes how many are left after a look.
func (s *Sweep) Left(known int) { s.enough = 2 * known }
