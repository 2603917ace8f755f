// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"
)

// Sorted is the spec with its volumes in a fixed order: a ticket is granted all of them or none, so
// that their order does not matter. Two specs ask for the same if these are equal.
func (s VolumeTicketSpec) Sorted() VolumeTicketSpec {
	claim := func(v TicketVolume) string {
		if v.Claim == nil {
			return ""
		}
		return v.Claim.Name
	}
	s.Volumes = slices.SortedFunc(slices.Values(s.Volumes), func(a, b TicketVolume) int {
		return cmp.Or(cmp.Compare(claim(a), claim(b)), cmp.Compare(a.PersistentVolume, b.PersistentVolume))
	})
	return s
}
