// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math/rand/v2"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Book holds the faults, in the order they were set. It is for serial use. The zero value is ready.
type Book struct {
	faults []*diskapi.FaultStatus
}

func (b *Book) Set(f diskapi.Fault) {
	b.faults = append(b.faults, &diskapi.FaultStatus{Fault: f})
}

// Clear removes the fault with this ID, or all if it is empty.
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

func (b *Book) List() []diskapi.FaultStatus {
	out := make([]diskapi.FaultStatus, 0, len(b.faults))
	for _, f := range b.faults {
		out = append(out, *f)
	}
	return out
}

// Hit counts a call and returns its fault. The first unspent match decides, whether it hits or lets the
// call pass.
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

// draw needs no state: the seed and the number of the call decide.
func draw(f *diskapi.FaultStatus) bool {
	if f.Probability == 0 || f.Probability == 1 {
		return true
	}
	return rand.New(rand.NewPCG(f.Seed, uint64(f.Seen))).Float64() < f.Probability
}
