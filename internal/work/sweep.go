// SPDX-License-Identifier: Apache-2.0

package work

const fewKnown = 128

// Sweep says when to look for known keys that have gone: when twice as many are known as the last look
// left. The looks at each key are bounded. The zero value is ready; not for parallel use.
type Sweep struct{ enough int }

// Due says whether to look now.
func (s *Sweep) Due(known int) bool { return known >= max(fewKnown, s.enough) }

// Left notes the number after a look.
func (s *Sweep) Left(known int) { s.enough = 2 * known }
