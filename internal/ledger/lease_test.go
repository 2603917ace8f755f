// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

// TestNodeLease checks that a Lease counts from when this process first read its
// time of renewal, whatever that time is, and that reading it again moves nothing
// but when it was read last.
func TestNodeLease(t *testing.T) {
	l, at := New(), func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	if touched := l.Apply(at(0), NodeLease{Node: "n", Renewed: 5}); len(touched.Nodes) > 0 || l.Snapshot().Node("n") != nil {
		t.Errorf("the Lease of a node that is not known touched %v", touched)
	}
	l.Apply(at(1), NodeState{Name: "n", UID: "u", Version: "1"})
	for _, step := range []struct {
		now, renewed   int64
		first, touches bool
	}{
		{now: 2, renewed: 900, first: true, touches: true},
		{now: 12, renewed: 900},
		{now: 22, renewed: 700, first: true, touches: true}, // another one, though earlier by its own clock
		{now: 32, renewed: 700},
		{now: 42, renewed: 0, first: true, touches: true},
		{now: 52, renewed: 0},
	} {
		now := at(int(step.now))
		touched := l.Apply(now, NodeLease{Node: "n", Renewed: step.renewed})
		n := l.Snapshot().Node("n")
		if n.Renewed != step.renewed || !n.LeaseRead.Equal(now) || n.RenewedAt.Equal(now) != step.first {
			t.Errorf("at %d s: renewed %d, first read at %v, last at %v", step.now, n.Renewed, n.RenewedAt, n.LeaseRead)
		}
		if (len(touched.Nodes) > 0) != step.touches {
			t.Errorf("at %d s it touched %v", step.now, touched)
		}
	}
}
