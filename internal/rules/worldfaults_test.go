// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (w *randomWorld) nodeFails() {
	n := nodeName(w.below(worldNodes))
	k := w.kubeletOf(n)
	if w.below(3) == 0 {
		k.Linked = false
	} else {
		k.Kill()
	}
	if node, exists := w.Node(n); exists {
		node.Ready = ledger.ReadyUnknown
		w.trace("node %s fails", n)
		w.put(node)
	}
}

func (w *randomWorld) nodeReturns() {
	n := nodeName(w.below(worldNodes))
	if w.below(2) == 0 {
		w.machine(n).PowerOff()
	}
	w.returns(n)
}

func (w *randomWorld) returns(n ledger.NodeName) {
	k := w.kubeletOf(n)
	k.Linked = true
	if !k.Up {
		k.Start()
	}
	w.trace("node %s returns", n)
	if node, exists := w.Node(n); exists {
		node.OutOfService = false
		w.put(node)
	}
	w.tick(k.Machine())
}

func (w *randomWorld) taint() {
	n := nodeName(w.below(worldNodes))
	if node, exists := w.Node(n); exists && !w.kubeletOf(n).Works() && node.Ready != ledger.ReadyTrue {
		node.OutOfService = true
		w.machine(n).PowerOff()
		w.trace("node %s is out of service", n)
		w.put(node)
	}
}

func (w *randomWorld) remakeNode() {
	n := nodeName(w.below(worldNodes))
	_, exists := w.Node(n)
	switch {
	case w.noRemake:
	case !exists:
		w.returns(n)
	case !w.kubeletOf(n).Works():
		w.kubeletOf(n).Kill()
		w.trace("node %s is deleted", n)
		w.drop(world.Nodes, string(n))
	}
}

func (w *randomWorld) driverFaults() {
	v := ledger.VolumeID{Driver: "disk", Handle: "pv-" + claimKey(w.below(worldClaims)).Name}
	book := w.csi.failAttach
	if w.below(2) == 0 {
		book = w.csi.failDetach
	}
	if _, failing := book[v]; failing {
		delete(book, v)
		return
	}
	book[v] = ledger.CallError{Code: []int32{13, 4, 8}[w.below(3)], Message: "the cloud said no"}
}

func (w *randomWorld) advanceTime() {
	w.pass([]time.Duration{time.Second, 31 * time.Second, 2 * time.Minute, 7 * time.Minute}[w.below(4)])
}

func (w *randomWorld) restartController() {
	w.trace("the controller starts anew")
	w.landAll()
	w.restart()
}

// The judge uses the limit at the time of the grant.
func (w *randomWorld) changeLimit() {
	w.registerDriver(nodeName(w.below(worldNodes)), int32(w.below(4)))
	w.flush()
}
