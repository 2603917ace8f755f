// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Eased says whether a request that did not fit a node may fit it by newer
// facts, if neither its own volumes nor a policy have changed: whether anything
// about the node is another than before, or fewer slots of a driver of the
// request's are used there. It says yes more often than Fit, never no where Fit
// has come to say yes, and costs a fraction of it.
func Eased(before, after ledger.Snapshot, r Request, n ledger.NodeName) bool {
	was, is := before.Node(n), after.Node(n)
	if is != nil && !ready(is) && before.ZoneNodes(is) != after.ZoneNodes(is) {
		return true // whether time takes what is there may depend on it
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

// FencedSince says whether a node is fenced for a volume that a request asks for, which was
// not by older facts and at an earlier time: who has the volume there keeps it from nobody
// any more, and nothing but time need have passed. Of a shared volume nobody keeps another
// from it in the first place, and it may be at very many nodes.
func FencedSince(before ledger.Snapshot, then time.Time, after ledger.Snapshot, now time.Time, r Request) bool {
	for _, need := range r.Needs {
		v := after.Volume(need.Volume)
		if v == nil || !exclusive(access(after, v, need.Access)) {
			continue
		}
		for i := range v.NodeVolumes {
			n := v.NodeVolumes[i].Node
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

// alike says whether two records of a node differ in nothing that Fit looks at,
// but for the slots in use.
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
