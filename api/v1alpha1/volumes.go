// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"
)

// SortedVolumes is a copy of a ticket's volumes in an order of their own: a ticket is granted all of
// them or none, so that the order in which they stand says nothing.
func SortedVolumes(list []TicketVolume) []TicketVolume {
	claim := func(v TicketVolume) string {
		if v.Claim == nil {
			return ""
		}
		return v.Claim.Name
	}
	return slices.SortedFunc(slices.Values(list), func(a, b TicketVolume) int {
		return cmp.Or(cmp.Compare(claim(a), claim(b)), cmp.Compare(a.PersistentVolume, b.PersistentVolume), cmp.Compare(a.PodVolume, b.PodVolume))
	})
}
