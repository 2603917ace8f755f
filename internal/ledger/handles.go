// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"slices"
)

// handles is a sorted list of volume handles. It never changes: with and without return another list, which
// shares all equal parts. They copy one part of the list and the list of parts, so that a node with tens of
// thousands of volumes in use costs little more for each than a node with ten.
//
//	Invariant: no part is empty, or longer than maxPart
type handles struct {
	parts [][]string
}

const maxPart = 256

// find is a handle's part and place, present or not.
func (s handles) find(handle string) (part, i int, found bool) {
	part, _ = slices.BinarySearchFunc(s.parts, handle, func(part []string, handle string) int {
		if part[len(part)-1] < handle {
			return -1
		}
		return 1
	})
	if part == len(s.parts) {
		part = max(0, part-1) // at the end of the last one
	}
	if len(s.parts) == 0 {
		return 0, 0, false
	}
	i, found = slices.BinarySearch(s.parts[part], handle)
	return part, i, found
}

// with is false if the handle is present already.
func (s handles) with(handle string) (handles, bool) {
	part, i, found := s.find(handle)
	switch {
	case found:
		return s, false
	case len(s.parts) == 0:
		return handles{[][]string{{handle}}}, true
	}
	longer := insertAt(s.parts[part], i, handle)
	if len(longer) <= maxPart {
		parts := slices.Clone(s.parts)
		parts[part] = longer
		return handles{parts}, true
	}
	half := len(longer) / 2
	if part == len(s.parts)-1 && i == maxPart {
		half = maxPart // ordered input: keep parts full
	}
	parts := insertAt(s.parts, part, slices.Clone(longer[:half]))
	parts[part+1] = slices.Clone(longer[half:])
	return handles{parts}, true
}

// without is the list without a handle; false if it is not there.
func (s handles) without(handle string) (handles, bool) {
	part, i, found := s.find(handle)
	if !found {
		return s, false
	}
	shorter := removeAt(s.parts[part], i)
	if len(shorter) == 0 {
		return handles{removeAt(s.parts, part)}, true
	}
	parts := slices.Clone(s.parts)
	parts[part] = shorter
	return handles{parts}, true
}

// all iterates over the handles, in their order.
func (s handles) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, part := range s.parts {
			for _, handle := range part {
				if !yield(handle) {
					return
				}
			}
		}
	}
}
