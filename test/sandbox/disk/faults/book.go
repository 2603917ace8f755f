// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math/rand/v2"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Book holds the faults that are set, in the order they were set. It is for
// serial use. The zero value is empty and ready.
type Book struct {
	faults []*diskapi.FaultStatus
}

// Set adds a fault. Its ID must be set and new.
func (b *Book) Set(f diskapi.Fault) {
	b.faults = append(b.faults, &diskapi.FaultStatus{Fault: f})
}

// Clear removes the fault with this ID, or every fault if the ID is empty, and returns the removed IDs.
func (b *Book) Clear(id string) (cleared []string) {
	b.faults = slices.DeleteFunc(b.faults, func(f *diskapi.FaultStatus) bool {
		gone := id == "" || f.ID == id
		if gone {
			cleared = append(cleared, f.ID)
		}
		return gone
	})
	return cleared
}

// List returns the faults that are set, spent ones included.
func (b *Book) List() []diskapi.FaultStatus {
	out := make([]diskapi.FaultStatus, 0, len(b.faults))
	for _, f := range b.faults {
		out = append(out, *f)
	}
	return out
}

// Hit counts a call that arrived and returns the fault that hits it, if any.
// The first fault that matches and is not spent decides, whether it hits or
// lets the call pass.
func (b *Book) Hit(call diskapi.Call, volume, node string) (diskapi.Fault, bool) {
	for _, f := range b.faults {
		if !f.Matches(call, volume, node) || spent(f) {
			continue
		}
		f.Seen++
		if f.Seen <= f.Skip || !draw(f) {
			return diskapi.Fault{}, false
		}
		f.Hits++
		return f.Fault, true
	}
	return diskapi.Fault{}, false
}

func spent(f *diskapi.FaultStatus) bool { return f.Times > 0 && f.Hits >= f.Times }

// draw decides by the seed and the number of the call alone, so that it needs
// no state of its own.
func draw(f *diskapi.FaultStatus) bool {
	if f.Probability == 0 || f.Probability == 1 {
		return true
	}
	return rand.New(rand.NewPCG(f.Seed, uint64(f.Seen))).Float64() < f.Probability
}
