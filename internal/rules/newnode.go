// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// NewNode is why a request would not fit a new, empty node. Then more nodes don't help: the request waits
// for claims, volumes or their holders.
func (a Arbiter) NewNode(s ledger.Snapshot, r Request, now time.Time) Verdict {
	return evaluation{arbiter: a, snapshot: s, request: r, now: now}.newNode()
}

func (w evaluation) newNode() Verdict {
	return refuse(append(w.reasonsBesideRoom(), w.policed()...)).SeenFrom(w.request.Who.Namespace)
}

// Nowhere says whether a request fits neither an existing nor a new node, also after tickets have yielded.
// It judges only nodes that the reasons (NewNode's) name, unless they include a policy's limit.
func (a Arbiter) Nowhere(s ledger.Snapshot, r Request, now time.Time) (Verdict, bool) {
	v := a.NewNode(s, r, now)
	if v.Allowed() || (evaluation{arbiter: a, snapshot: s, request: r, now: now, yielded: true}).newNode().Allowed() {
		return v, false
	}
	for _, reason := range v.Reasons {
		if reason.Code == NoFreeSlot {
			return v, !a.fitsAny(s, r, now)
		}
	}
	return v, !slices.ContainsFunc(v.Reasons, func(reason Reason) bool {
		return There(s, reason.Node) && a.fitsYielded(s, r, reason.Node, now)
	})
}

// There says whether a node has a Node or a CSINode. Fit omits this check.
func There(s ledger.Snapshot, name ledger.NodeName) bool {
	n := s.Node(name)
	return n != nil && (n.Exists || n.CSINode)
}

func (a Arbiter) fitsAny(s ledger.Snapshot, r Request, now time.Time) bool {
	for n := range s.Nodes() {
		if There(s, n.Name) && a.fitsYielded(s, r, n.Name, now) {
			return true
		}
	}
	return false
}

// fitsYielded says whether a request fits a node, also after tickets have yielded.
func (a Arbiter) fitsYielded(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) bool {
	return evaluation{arbiter: a, snapshot: s, request: r, node: n, now: now, yielded: true}.fit().Allowed()
}

// policed lists the drivers with a policy that leaves too little room for the request at any node.
func (w evaluation) policed() []Reason {
	var reasons []Reason
	for driver := range w.drivers() {
		policy := PolicyFor(w.snapshot, driver, "")
		limit := Limit(ledger.NodeDriver{DriverOnNode: ledger.DriverOnNode{Limit: ledger.NoLimit}}, policy)
		needed, _ := w.fresh(driver)
		if limit != ledger.NoLimit && needed > limit {
			reasons = append(reasons, Reason{Code: NoFreeSlot, Driver: driver, Limit: limit, Needed: needed, Policy: policy.Name})
		}
	}
	return reasons
}
