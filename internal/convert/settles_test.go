// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type settling struct {
	ledger  *ledger.Ledger
	arb     rules.Arbiter
	disk    ledger.VolumeID
	now     time.Time
	version int
}

func newSettling() *settling {
	s := &settling{ledger: ledger.New(), disk: ledger.VolumeID{Driver: "disk", Handle: "data"}, now: time.Unix(1000, 0), version: 10}
	s.see(
		ledger.NodeState{Name: "n", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, BootID: "b"},
		ledger.NodeDrivers{Node: "n", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n", Limit: 4}}},
	)
	return s
}

func (s *settling) see(events ...ledger.Event) {
	for _, e := range events {
		s.ledger.Apply(s.now, e)
	}
}

func (s *settling) writes(looks int) int {
	writes := 0
	for range looks {
		for _, step := range s.arb.Plan(s.ledger.Snapshot(), s.disk, s.now).Steps {
			if step.Kind == rules.WriteHold {
				writes++
				object := HoldObject(HoldContext{Volume: s.disk, Now: s.now}, step.Hold)
				object.ResourceVersion = strconv.Itoa(s.version)
				s.version++
				s.see(Hold(object))
			}
		}
		s.now = s.now.Add(time.Second)
	}
	return writes
}

// A VolumeHold lists at most 256 PersistentVolumes, and must not be written repeatedly.
func TestHoldOfManyPersistentVolumesSettles(t *testing.T) {
	for _, access := range []ledger.Access{ledger.AccessNode, ledger.AccessMany} {
		s := newSettling()
		for i := range listed + 1 {
			name := fmt.Sprintf("pv-%04d", i)
			key := ledger.ClaimKey{Namespace: "shop", Name: name}
			s.see(
				ledger.PersistentVolume{Name: name, Version: "1", Volume: s.disk, Access: access, Claim: key},
				ledger.Claim{Key: key, Version: "1", Bound: true, PersistentVolume: name, Access: access},
			)
		}
		s.see(
			ledger.Pod{UID: "p", Version: "1", Namespace: "shop", Name: "db", Node: "n", Volumes: []ledger.PodVolume{{Name: "v", Claim: "pv-0000"}}},
			ledger.Attachment{Name: ledger.AttachmentName(s.disk, "n"), UID: "va", Version: "6", Driver: "disk", Node: "n", PersistentVolume: "pv-0000", Ours: true, AttachError: ledger.CallError{Message: "no"}},
			ledger.Complete{},
		)
		if n := s.writes(10); n != 1 {
			t.Errorf("access %v: the hold was written %d times in 10 looks, and nothing had changed", access, n)
		}
	}
}

// A policy's time may be no whole number of seconds.
func TestHoldOfATimeThatIsOverSettles(t *testing.T) {
	for _, limit := range []time.Duration{60 * time.Second, 60*time.Second + 500*time.Millisecond, 500 * time.Millisecond} {
		s := newSettling()
		s.arb.Cooperative = true // so that nothing is taken
		s.see(
			ledger.Policy{Name: "p", Version: "1", Driver: "disk", AfterPodGone: &limit},
			ledger.PersistentVolume{Name: "pv", Version: "3", Volume: s.disk, Access: ledger.AccessNode},
			ledger.HoldSeen{Volume: s.disk, Hold: ledger.Hold{Version: "5", Node: "n", NodeUID: "n", BootID: "b", State: ledger.HoldHeld, Transitions: 1, PVs: []string{"pv"}}},
			ledger.Attachment{Name: ledger.AttachmentName(s.disk, "n"), UID: "va", Version: "6", Driver: "disk", Node: "n", PersistentVolume: "pv", Attached: true, Ours: true, NodeID: "n"},
			ledger.Complete{},
			ledger.NodeState{Name: "n", UID: "n", Version: "7", Ready: ledger.ReadyUnknown, ReadySince: 1000, Managed: true, BootID: "b", InUse: []ledger.VolumeID{s.disk}, Reported: []ledger.VolumeID{s.disk}},
			ledger.NodeLease{Node: "n", Renewed: 7},
		)
		if n := s.writes(90); n == 0 {
			t.Errorf("afterPodGone %s: the hold was not written while the time ran", limit)
		}
		if n := s.writes(30); n > 0 {
			t.Errorf("afterPodGone %s: after its end the hold was written %d times in 30 looks, and nothing had changed", limit, n)
		}
	}
}
