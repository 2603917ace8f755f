// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A driver's refusal does not count for ever, though no object changes.
func TestTimePassesInTheLedger(t *testing.T) {
	start := time.Unix(0, 0)
	now := start
	o := &Observer{config: Config{Now: func() time.Time { return now }}, ledger: ledger.New()}
	o.Apply(ledger.Attachment{Name: "va", UID: "va", Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv",
		AttachError: ledger.CallError{Code: ledger.ResourceExhausted}})
	touched := 0
	o.Subscribe(func(t ledger.Touched) { touched += len(t.Nodes) })
	for _, test := range []struct {
		after time.Duration
		full  bool
	}{{rules.ExhaustedFor - time.Second, true}, {rules.ExhaustedFor, false}, {2 * rules.ExhaustedFor, false}} {
		now = start.Add(test.after)
		o.pass(now)
		if got := o.Snapshot().Node("n").Driver("disk").Exhausted; got != test.full {
			t.Errorf("after %v the node is full: %t", test.after, got)
		}
	}
	if touched != 1 {
		t.Errorf("subscribers were told %d times, want once", touched)
	}
}
