// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// While the first lists come in, a pod may go before its claim is known: nobody
// can say that its volume was not in use. Found by the simulator, with a volume
// that was taken by force minutes too early (I3, I9).
func TestNothingIsIdleBeforeEverythingIsSeen(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	volume := ledger.VolumeID{Driver: "d", Handle: "v"}
	key := ledger.ClaimKey{Namespace: "s", Name: "data"}
	measured := ledger.Force{Rule: "AfterPodGone", Node: "n1", Elapsed: time.Minute}
	l := ledger.New()
	l.Apply(at(0), ledger.NodeState{Name: "n1", UID: "n1", Version: "1", InUse: []ledger.VolumeID{volume}})
	l.Apply(at(0), ledger.HoldSeen{Volume: volume, Hold: ledger.Hold{Version: "1", Node: "n1", Force: measured}})
	l.Apply(at(1), ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
	l.Apply(at(8), ledger.PodGone{UID: "p"})
	l.Apply(at(8), ledger.Claim{Key: key, UID: "c", Version: "1", Bound: true, PersistentVolume: "pv"})
	l.Apply(at(8), ledger.PersistentVolume{Name: "pv", Version: "1", Volume: volume, Claim: key})
	l.Apply(at(9), ledger.Complete{})
	l.Apply(at(20), ledger.Complete{}) // only the first one counts
	s := l.Snapshot()
	if since, idle := s.Idle(s.Volume(volume).Place("n1")); !idle || !since.Equal(at(9)) {
		t.Errorf("idle %v since %v, want since %v", idle, since, at(9))
	}
	if f, read := s.Volume(volume).Earlier(); f != measured || !read.Equal(at(9)) {
		t.Errorf("%+v goes on from %v, want from %v", f, read, at(9))
	}
	l.Apply(at(30), ledger.NodeState{Name: "n2", UID: "n2", Version: "2", InUse: []ledger.VolumeID{volume}})
	s = l.Snapshot()
	if since, idle := s.Idle(s.Volume(volume).Place("n2")); !idle || !since.Equal(at(30)) {
		t.Errorf("a later place is idle %v since %v, want since %v", idle, since, at(30))
	}
}
