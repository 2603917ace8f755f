// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Eased says whether a request may fit a node by newer facts about the node and its slots only. It may say
// yes where Fit says no, never the reverse. It costs a fraction of Fit.
func Eased(before, after ledger.Snapshot, r Request, n ledger.NodeName) bool {
	was, is := before.Node(n), after.Node(n)
	if is != nil && !ready(is) && before.ZoneNodes(is) != after.ZoneNodes(is) {
		return true // it may decide whether time frees a volume there
	}
	if was == is {
		return false
	}
	if was == nil || is == nil || !alike(was, is) {
		return true
	}
	for _, need := range r.Needs {
		if is.Driver(need.Volume.Driver).Taken() < was.Driver(need.Volume.Driver).Taken() {
			return true
		}
	}
	return false
}

// FencedSince says whether time has fenced a node for an exclusive volume of a request. Users of shared
// volumes, perhaps at very many nodes, keep nobody from them.
func FencedSince(before ledger.Snapshot, then time.Time, after ledger.Snapshot, now time.Time, r Request) bool {
	for _, need := range r.Needs {
		v := after.Volume(need.Volume)
		if v == nil || !exclusive(access(after, v, need.Access)) {
			continue
		}
		for i := range v.OnNodes {
			n := v.OnNodes[i].Node
			if ready(after.Node(n)) || !fenced(after, v, n, now) {
				continue
			}
			if was := before.Volume(need.Volume); was == nil || !fenced(before, was, n, then) {
				return true
			}
		}
	}
	return false
}

// alike says whether two records of a node are equal for Fit, except for used slots.
func alike(a, b *ledger.Node) bool {
	if !a.SameHealth(&b.NodeState) || a.Exists != b.Exists || a.UID != b.UID || a.ReadySince != b.ReadySince || !a.NotReady.Equal(b.NotReady) ||
		!a.Heard.Equal(b.Heard) || !a.RenewedAt.Equal(b.RenewedAt) || !a.ReadAgain.Equal(b.ReadAgain) ||
		!slices.Equal(a.FencedAt, b.FencedAt) || !slices.Equal(a.CutOff, b.CutOff) || !slices.Equal(a.CutBefore, b.CutBefore) ||
		a.CSINode != b.CSINode || a.CSIRev != b.CSIRev || len(a.Drivers) != len(b.Drivers) || a.SELinuxMount != b.SELinuxMount || !maps.Equal(a.Labels, b.Labels) {
		return false
	}
	for i := range a.Drivers {
		x, y := &a.Drivers[i], &b.Drivers[i]
		if x.DriverOnNode != y.DriverOnNode || x.Registered != y.Registered || x.Exhausted != y.Exhausted {
			return false
		}
	}
	return true
}
