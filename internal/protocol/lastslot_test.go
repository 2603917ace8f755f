// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Two workers decide on the same facts. A creation for a pod without an opt-in is sent all the same.
func TestLastSlotIsSentOnce(t *testing.T) {
	for name, test := range map[string]struct {
		optedOut bool
		sent     int
	}{"opted in": {false, 1}, "opted out": {true, 2}} {
		l, now := ledger.New(), time.Unix(1000, 0)
		steps := lastSlot(t, l, now, test.optedOut)
		var memory Memory
		sent := 0
		for _, step := range steps {
			task, move := memory.Next(Do(step), l.Snapshot(), now)
			for _, e := range move.Tell {
				l.Apply(now, e)
			}
			if _, move = memory.Next(task, l.Snapshot(), now); move.Send != nil {
				sent++
			} else if move.End != Stale {
				t.Errorf("%s: it ended %s", name, move.End)
			}
		}
		if sent != test.sent {
			t.Errorf("%s: %d creations were sent, want %d", name, sent, test.sent)
		}
	}
}

func lastSlot(t *testing.T, l *ledger.Ledger, now time.Time, optedOut bool) []rules.Step {
	t.Helper()
	volume := func(name string) ledger.VolumeID { return ledger.VolumeID{Driver: "d", Handle: name} }
	wants := func(name string) {
		for _, e := range []ledger.Event{
			ledger.PersistentVolume{Name: name, Version: "1", Volume: volume(name), Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: name}},
			ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: name}, UID: name, Version: "1", PersistentVolume: name, Bound: true, Access: ledger.AccessMany},
			ledger.Pod{UID: name, Version: "1", Namespace: "shop", Name: name, Node: "n1", OptedOut: optedOut, Volumes: []ledger.PodVolume{{Name: "v", Claim: name}}},
		} {
			l.Apply(now, e)
		}
	}
	l.Apply(now, ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	l.Apply(now, ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "n1", Limit: 2}}})
	wants("there")
	l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(volume("there"), "n1"), UID: "a", Version: "1", Driver: "d", Node: "n1", PersistentVolume: "there", Ours: true, Attached: true})
	l.Apply(now, ledger.Complete{})
	var steps []rules.Step
	for _, name := range []string{"one", "two"} {
		wants(name)
		for _, step := range (rules.Arbiter{}).Plan(l.Snapshot(), volume(name), now).Steps {
			if step.Kind == rules.CreateAttachment {
				steps = append(steps, step)
			}
		}
		if name == "one" { // decided before its pod is known
			l.Apply(now, ledger.PodGone{UID: name})
		}
	}
	l.Apply(now, ledger.Pod{UID: "one", Version: "1", Namespace: "shop", Name: "one", Node: "n1", OptedOut: optedOut, Volumes: []ledger.PodVolume{{Name: "v", Claim: "one"}}})
	if len(steps) != 2 {
		t.Fatalf("%d creations are planned, want 2: %+v", len(steps), steps)
	}
	return steps
}
