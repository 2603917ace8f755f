// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

// A scheduler can't write the hold again, and would believe its place for ever.
func TestReaderForgetsADeletedHold(t *testing.T) {
	now := time.Unix(1000, 0)
	id := VolumeID{Driver: "d", Handle: "h"}
	hold := HoldSeen{Volume: id, Hold: Hold{Version: "1", Node: "dead", Transitions: 1, Fences: []Fence{{Node: "dead", Rule: "OutOfService"}}}}
	for name, test := range map[string]struct {
		ledger *Ledger
		want   NodeName
	}{"a controller": {New(), "dead"}, "a scheduler": {NewReader(), ""}} {
		l := test.ledger
		l.Apply(now, PersistentVolume{Name: "pv", Version: "1", Volume: id})
		l.Apply(now, hold)
		l.Apply(now, HoldGone{Volume: id})
		record := l.Snapshot().Volume(id).Record()
		if got := record.Node; got != test.want {
			t.Errorf("%s: the volume is held at %q, want %q", name, got, test.want)
		}
	}
}
