// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The taint counts at once only if the node is Unknown and unheard since.
func TestOutOfServiceTaint(t *testing.T) {
	at := func(seconds int) time.Time { return auditTime.Add(time.Duration(seconds) * time.Second) }
	const never = -1000
	for name, test := range map[string]struct {
		ready           ledger.Readiness
		tainted, exists bool
		taint, heard    int // seconds; never: absent
		renewed, read   int // of the Lease
		rule            bool
		left            time.Duration
	}{
		"no taint":                             {ledger.ReadyUnknown, false, true, never, never, never, never, false, 0},
		"the Node is gone":                     {ledger.ReadyUnknown, true, false, 90, never, never, never, false, 0},
		"Unknown":                              {ledger.ReadyUnknown, true, true, 90, never, never, never, true, 0},
		"heard before the taint":               {ledger.ReadyUnknown, true, true, 90, 80, never, never, true, 0},
		"heard as the taint came":              {ledger.ReadyUnknown, true, true, 90, 90, never, never, true, 0},
		"heard after the taint":                {ledger.ReadyUnknown, true, true, 90, 95, never, never, true, 45 * time.Second},
		"heard long ago, and after":            {ledger.ReadyUnknown, true, true, 10, 20, never, never, true, 0},
		"False, the Lease is not read":         {ledger.ReadyFalse, true, true, 10, never, never, never, true, 50 * time.Second},
		"False, the Lease stands still":        {ledger.ReadyFalse, true, true, 0, never, 0, 100, true, 0},
		"False, it stood still before":         {ledger.ReadyFalse, true, true, 90, never, 0, 100, true, 40 * time.Second},
		"False, it has moved since":            {ledger.ReadyFalse, true, true, 0, never, 70, 100, true, 20 * time.Second},
		"False, it stood still up to the read": {ledger.ReadyFalse, true, true, 0, never, 0, 30, true, 20 * time.Second},
		"False, for nearly long enough":        {ledger.ReadyFalse, true, true, 51, never, 0, 100, true, time.Second},
		"False, for just long enough":          {ledger.ReadyFalse, true, true, 50, never, 0, 100, true, 0},
	} {
		n := &ledger.Node{Exists: test.exists, NodeState: ledger.NodeState{Name: "dead", UID: "x", Ready: test.ready, OutOfService: test.tainted}, NotReady: at(0)}
		for seconds, to := range map[*time.Time]int{&n.OutOfServiceAt: test.taint, &n.Heard: test.heard, &n.RenewedAt: test.renewed, &n.LeaseRead: test.read} {
			if to != never {
				*seconds = at(to)
			}
		}
		got := outOfService(n, at(100))
		if (got.Rule == OutOfService) != test.rule || got.Left != test.left || got.over() != (test.rule && test.left == 0) {
			t.Errorf("%s: %+v, want %s", name, got, test.left)
		}
		if other := shutdown(n, at(100)); other.Rule != "" {
			t.Errorf("%s: %+v without that taint", name, other)
		}
		n.Shutdown, n.ShutdownAt, n.OutOfService, n.OutOfServiceAt = n.OutOfService, n.OutOfServiceAt, false, time.Time{}
		want := got
		if want.Rule != "" {
			want.Rule = NodeShutdown
		}
		if got := shutdown(n, at(100)); got != want {
			t.Errorf("%s, by the cloud's taint: %+v, want %+v", name, got, want)
		}
	}
}
