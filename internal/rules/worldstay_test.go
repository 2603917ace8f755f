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

// An attacher leaves volumes where they are wanted; some volumes' detach fails.
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

func TestWorldStays(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) { worldStays(t, false) })
}

// This attacher ignores requests, as external-attacher does.
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
