// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
)

// newWorldStays is a world with an attacher that leaves a volume where it is wanted again. It begins with
// volumes whose detach fails, and pods come for them.
func newWorldStays(data []byte) *randomWorld {
	w := newWorld(data)
	w.arb = rules.Arbiter{StayAttached: true}
	n := nodeName(0)
	for i := range 2 {
		pv := "pv-" + claimKey(i).Name
		v := ledger.VolumeID{Driver: "disk", Handle: pv}
		w.csi.failDetach[v] = ledger.CallError{Code: 13, Message: "the cloud said no"}
		node, _ := w.Node(n)
		w.Publish(v, string(n))
		w.put(ledger.HoldSeen{Volume: v, Hold: ledger.Hold{Node: n, NodeUID: node.UID, Transitions: 1, State: ledger.HoldHeld, PVs: []string{pv}}})
		w.put(ledger.Attachment{
			Name: ledger.AttachmentName(v, n), UID: w.UID(), Driver: "disk", Node: n, PersistentVolume: pv, NodeID: string(n),
			Ours: true, Stamped: true, Transitions: 1, Attached: true, Deleting: true, DetachError: w.csi.failDetach[v],
		})
	}
	w.flush()
	w.more = []func(){w.podForStuck, w.planOne, w.attacherTurn, w.attacherTurn}
	return w
}

func (w *randomWorld) podForStuck() {
	if len(w.pods()) >= worldPods {
		return
	}
	w.pod++
	name := "p" + strconv.Itoa(w.pod)
	w.put(ledger.Pod{
		UID: name, Namespace: namespace, Name: name, Created: w.Now.Unix(),
		Volumes: []ledger.PodVolume{{Name: "a", Claim: claimKey(w.below(2)).Name}},
	})
	w.trace("pod %s comes for a volume whose detach fails", name)
}

// TestWorldStays plays random worlds with left volumes. No volume is at two nodes, all users are served,
// and each volume's place is accounted for.
func TestWorldStays(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) { worldStays(t, false) })
}

// TestWorldStaysStock plays them with an attacher that ignores requests, as external-attacher does.
func TestWorldStaysStock(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) { worldStays(t, true) })
}

func worldStays(t *rapid.T, stock bool) {
	w := newWorldStays(proptest.Bytes(t, 900))
	w.csi.stock = stock
	w.play(t)
	for v, machines := range w.Disks.At {
		w.fail(t, "%s is left at %v", volumeName(w.cluster, v), machines)
	}
}
