// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// The Binding to another node is in flight: no pod is placed at the ticket's node before its outcome is
// known.
func TestReservedPodKeepsTheVolume(t *testing.T) {
	s := scriptAfter(t, `
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data
ticket mine type=Manual node=worker-1 claims=data
run
pod first claim=data
pod second claim=data
`)
	first, _ := s.podNamed("first")
	second, _ := s.podNamed("second")
	fits := func() bool {
		snap := s.snapshot()
		return s.arb.Fit(snap, rules.PodRequest(snap, &second), "worker-1", s.Now).Allowed()
	}
	if !fits() {
		t.Error("the ticket keeps a pod from its own node")
	}
	s.ledger.Reserve(s.Now, first, ledger.NodeName("worker-2"))
	if fits() {
		t.Error("two pods of one scheduler get one volume at two nodes")
	}
	playOn(t, s, "bind pod=first node=worker-2")
	if !fits() {
		t.Error("a bound pod that waits keeps a pod from the ticket's node")
	}
}
