// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The faults of random worlds.

func (w *world) nodeFails() {
	n := nodeName(w.below(worldNodes))
	node, exists := w.nodes[n]
	w.kubelets[n].down = true
	if exists {
		node.Ready = ledger.ReadyUnknown
		w.trace("node %s fails", n)
		w.putNode(node)
	}
}

// nodeReturns brings a node back, after a reboot or with all that it had
// mounted.
func (w *world) nodeReturns() {
	n := nodeName(w.below(worldNodes))
	if w.below(2) == 0 || w.nodes[n].OutOfService {
		w.kubelets[n].reboot()
	}
	w.returns(n)
}

func (w *world) returns(n ledger.NodeName) {
	w.kubelets[n].down = false
	if node, exists := w.nodes[n]; exists {
		node.Ready, node.OutOfService = ledger.ReadyTrue, false
		w.trace("node %s returns", n)
		w.putNode(node)
	}
}

// taint says that a node is powered off, when it is.
func (w *world) taint() {
	n := nodeName(w.below(worldNodes))
	if node, exists := w.nodes[n]; exists && w.kubelets[n].down && node.Ready != ledger.ReadyTrue {
		node.OutOfService = true
		w.kubelets[n].reboot()
		w.kubelets[n].down = true
		w.trace("node %s is out of service", n)
		w.putNode(node)
	}
}

// remakeNode deletes a Node object, or makes it again.
func (w *world) remakeNode() {
	n := nodeName(w.below(worldNodes))
	if w.noRemake {
		return
	}
	if _, exists := w.nodes[n]; exists && w.kubelets[n].down {
		delete(w.nodes, n)
		w.trace("node %s is deleted", n)
		w.seen(ledger.NodeGone{Name: n})
	} else if !exists {
		w.makeNode(n)
	}
}

func (w *world) makeNode(n ledger.NodeName) {
	w.trace("node %s is made again", n)
	w.putNode(ledger.NodeState{Name: n, UID: w.uid(string(n)), Ready: ledger.ReadyTrue, Managed: true})
	w.kubelets[n].down = false
}

func (w *world) driverFaults() {
	v := ledger.VolumeID{Driver: "disk", Handle: "pv-" + claimKey(w.below(worldClaims)).Name}
	book := w.disks.failAttach
	if w.below(2) == 0 {
		book = w.disks.failDetach
	}
	if _, failing := book[v]; failing {
		delete(book, v)
		return
	}
	book[v] = ledger.CallError{Code: []int32{13, 4, 8}[w.below(3)], Message: "the cloud said no"}
}

func (w *world) advanceTime() {
	w.pass([]time.Duration{time.Second, 31 * time.Second, 2 * time.Minute, 7 * time.Minute}[w.below(4)])
}

func (w *world) restartController() {
	w.trace("the controller starts anew")
	w.landAll()
	w.restart()
}

// changeLimit changes a limit, and is seen at once: what stands when a grant
// is given is what the judge goes by.
func (w *world) changeLimit() {
	w.registerDriver(nodeName(w.below(worldNodes)), int32(w.below(4)))
	w.flush()
}
