// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"reflect"
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestCompose(t *testing.T) {
	v := func(h string) ledger.VolumeID { return ledger.VolumeID{Driver: driver, Handle: h} }
	n := node("4", func(n *ledger.NodeState) {
		n.Reported, n.InUse = []ledger.VolumeID{v("a"), v("b")}, []ledger.VolumeID{v("b"), v("d")}
	})
	add := Change{Volume: v("c"), Add: true, NodeUID: "n"}
	again := Change{Volume: v("a"), Add: true, NodeUID: "n"}
	out := Change{Volume: v("a"), NodeUID: "n"}
	used := Change{Volume: v("b"), NodeUID: "n"}
	forced := Change{Volume: v("b"), NodeUID: "n", Rule: "OutOfService", Version: "4"}
	old := Change{Volume: v("b"), NodeUID: "n", Rule: "OutOfService", Version: "3"}
	another := Change{Volume: v("c"), Add: true, NodeUID: "m"}
	for name, test := range map[string]struct {
		changes []Change
		want    NodePatch
		stale   []int
	}{
		"in":                       {[]Change{add}, NodePatch{In: []ledger.VolumeID{v("c")}}, nil},
		"in already":               {[]Change{again}, NodePatch{}, nil},
		"in, and in use":           {[]Change{{Volume: v("d"), Add: true, NodeUID: "n"}}, NodePatch{In: []ledger.VolumeID{v("d")}}, nil},
		"out":                      {[]Change{out}, NodePatch{InUse: true, Out: []ledger.VolumeID{v("a")}}, nil},
		"out and in":               {[]Change{out, add}, NodePatch{InUse: true, Out: []ledger.VolumeID{v("a")}, In: []ledger.VolumeID{v("c")}}, nil},
		"in use":                   {[]Change{used, add}, NodePatch{In: []ledger.VolumeID{v("c")}}, []int{0}},
		"by force":                 {[]Change{forced}, NodePatch{Version: "4", Out: []ledger.VolumeID{v("b")}}, nil},
		"by force, at another":     {[]Change{old}, NodePatch{}, []int{0}},
		"another Node of the name": {[]Change{another, add}, NodePatch{In: []ledger.VolumeID{v("c")}}, []int{0}},
		"out, then in again":       {[]Change{out, again}, NodePatch{InUse: true}, nil},
		"in, then out again":       {[]Change{add, {Volume: v("c"), NodeUID: "n"}}, NodePatch{InUse: true}, nil},
		"out twice":                {[]Change{out, out}, NodePatch{InUse: true, Out: []ledger.VolumeID{v("a")}}, nil},
		"in twice":                 {[]Change{add, add}, NodePatch{In: []ledger.VolumeID{v("c")}}, nil},
		"out that is not in":       {[]Change{{Volume: v("e"), NodeUID: "n"}}, NodePatch{InUse: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			patch, fits, stale := Compose(n, test.changes)
			if len(fits)+len(stale) != len(test.changes) || !slices.Equal(stale, test.stale) {
				t.Errorf("fit %v, stale %v, want stale %v", fits, stale, test.stale)
			}
			if len(patch.Changes) != len(fits) || patch.Node != "n1" || patch.UID != "n" {
				t.Errorf("composed %+v", patch)
			}
			patch.Node, patch.UID, patch.Changes = "", "", nil
			if !reflect.DeepEqual(patch, test.want) && !(len(patch.In)+len(patch.Out)+len(test.want.In)+len(test.want.Out) == 0 && patch.InUse == test.want.InUse && patch.Version == test.want.Version) {
				t.Errorf("composed %+v, want %+v", patch, test.want)
			}
		})
	}
	if patch, _, _ := Compose(n, []Change{again}); !patch.Adds() {
		t.Error("a patch that may add does not say so")
	}
}
