// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

// Who waits for a node hears of its labels: volumes may be allowed there that were
// not.
func TestChangedLabelsTouchTheNode(t *testing.T) {
	l, now := New(), time.Unix(1000, 0)
	node := func(version, zone string) NodeState {
		return NodeState{Name: "n", UID: "n", Version: version, Ready: ReadyTrue, Managed: true, Reporting: true, Labels: map[string]string{"zone": zone}}
	}
	l.Apply(now, node("1", "a"))
	if touched := l.Apply(now, node("2", "b")); !slices.Contains(touched.Nodes, "n") {
		t.Errorf("another label touches %v", touched)
	}
	if touched := l.Apply(now, node("3", "b")); len(touched.Nodes) > 0 {
		t.Errorf("the same labels touch %v", touched)
	}
	if got := l.Snapshot().Node("n").Labels["zone"]; got != "b" {
		t.Errorf("the node is in zone %q", got)
	}
}

// Matching is done for every node that a pod may go to.
func TestMatchingAllocatesNothing(t *testing.T) {
	a := NewNodeAffinity(NodeTerm{Labels: []NodeRequirement{{"zone", NodeIn, []string{"a", "b"}}, {"size", NodeGt, []string{"3"}}}})
	labels := map[string]string{"zone": "b", "size": "10"}
	if !a.Matches("n", labels) {
		t.Fatal("no match")
	}
	if got := testing.AllocsPerRun(100, func() { a.Matches("n", labels) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
