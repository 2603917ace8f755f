// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The pod's claim is not known yet: its volume may have been in use (I3, I9).
func TestNothingIsIdleBeforeEverythingIsSeen(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	volume := ledger.VolumeID{Driver: "d", Handle: "v"}
	key := ledger.ClaimKey{Namespace: "s", Name: "data"}
	measured := ledger.Force{Rule: "AfterPodGone", Node: "n1", Elapsed: time.Minute}
	l := ledger.New()
	l.Apply(at(0), ledger.NodeState{Name: "n1", UID: "n1", Version: "1", InUse: []ledger.VolumeID{volume}})
	l.Apply(at(0), ledger.HoldSeen{Volume: volume, Hold: ledger.Hold{Version: "1", Node: "n1", Force: &measured}})
	l.Apply(at(1), ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
	l.Apply(at(8), ledger.PodGone{UID: "p"})
	l.Apply(at(8), ledger.Claim{Key: key, UID: "c", Version: "1", Bound: true, PersistentVolume: "pv"})
	l.Apply(at(8), ledger.PersistentVolume{Name: "pv", Version: "1", Volume: volume, Claim: key})
	l.Apply(at(9), ledger.Complete{})
	l.Apply(at(20), ledger.Complete{}) // only the first one counts
	s := l.Snapshot()
	if since, idle := s.Idle(s.Volume(volume).OnNode("n1")); !idle || !since.Equal(at(9)) {
		t.Errorf("idle %v since %v, want since %v", idle, since, at(9))
	}
	if f, read := s.Volume(volume).Earlier(); f != measured || !read.Equal(at(9)) {
		t.Errorf("%+v goes on from %v, want from %v", f, read, at(9))
	}
	l.Apply(at(30), ledger.NodeState{Name: "n2", UID: "n2", Version: "2", InUse: []ledger.VolumeID{volume}})
	s = l.Snapshot()
	if since, idle := s.Idle(s.Volume(volume).OnNode("n2")); !idle || !since.Equal(at(30)) {
		t.Errorf("a later place is idle %v since %v, want since %v", idle, since, at(30))
	}
}

// A watch of claims may lag after Complete: any volume at the node may have been the pod's (I3, I9).
func TestPodOfUnknownClaimIsTheLastUser(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	volume := ledger.VolumeID{Driver: "d", Handle: "v"}
	claimed := func(name string) ledger.Pod {
		return ledger.Pod{UID: name, Namespace: "s", Name: name, Node: "n1", Version: "1", Volumes: []ledger.PodVolume{{Name: "v", Claim: name}}}
	}
	finished := claimed("ended")
	finished.Version, finished.Phase = "2", ledger.PodFinished
	moved := claimed("ended")
	moved.Version, moved.Node = "2", "n2"
	for _, c := range []struct {
		what   string
		known  bool // the pod's claim, which needs no attachment
		leave  ledger.Event
		expect int
	}{
		{"a pod of an unknown claim is gone", false, ledger.PodGone{UID: "ended"}, 8},
		{"a pod of an unknown claim has ended", false, finished, 8},
		{"a pod of an unknown claim is at another node", false, moved, 8},
		{"a pod of storage that needs no attachment is gone", true, ledger.PodGone{UID: "ended"}, 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := ledger.New()
			l.Apply(at(0), ledger.NodeState{Name: "n1", UID: "n1", Version: "1", InUse: []ledger.VolumeID{volume}})
			l.Apply(at(1), ledger.Complete{})
			if c.known {
				key := ledger.ClaimKey{Namespace: "s", Name: "ended"}
				l.Apply(at(1), ledger.Claim{Key: key, UID: "c", Version: "1", Bound: true, PersistentVolume: "nfs"})
				l.Apply(at(1), ledger.PersistentVolume{Name: "nfs", Version: "1", Claim: key})
			}
			l.Apply(at(2), claimed("ended"))
			l.Apply(at(8), c.leave)
			l.Apply(at(9), ledger.PodGone{UID: "ended"}) // an ended pod ends nothing more
			s := l.Snapshot()
			p := s.Volume(volume).OnNode("n1")
			if since, idle := s.Idle(p); !idle || !since.Equal(at(c.expect)) || p.SawLeave == c.known {
				t.Errorf("idle %v since %v (seen to begin: %t), want since %v", idle, since.Sub(began), p.SawLeave, at(c.expect).Sub(began))
			}
		})
	}
}

// Otherwise a volume is taken by force after milliseconds (I3, I9).
func TestOutageCountsFromWhenItWasSeen(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	l := ledger.New()
	version := 0
	attachment := func(minutes int, node ledger.NodeName) {
		v := ledger.VolumeID{Driver: "d", Handle: "v"}
		version++
		l.Apply(at(minutes), ledger.Attachment{Name: ledger.AttachmentName(v, node), Version: strconv.Itoa(version), Driver: "d", Node: node, Inline: v})
	}
	node := func(minutes int, name ledger.NodeName, uid string, ready ledger.Readiness, since int) {
		version++
		l.Apply(at(minutes), ledger.NodeState{Name: name, UID: uid, Version: strconv.Itoa(version), Ready: ready, ReadySince: at(since).Unix()})
	}
	expect := func(what string, name ledger.NodeName, minutes int, saw bool) {
		t.Helper()
		if n := l.Snapshot().Node(name); !n.NotReady.Equal(at(minutes)) || n.SawFail != saw {
			t.Errorf("%s: not Ready since %v (seen to fail: %t), want %v (%t)", what, n.NotReady.Sub(began), n.SawFail, at(minutes).Sub(began), saw)
		}
	}
	attachment(0, "listed")
	node(7, "listed", "a", ledger.ReadyUnknown, 7)
	expect("a node that is listed after its attachment", "listed", 7, false)
	attachment(7, "unlisted")
	l.Apply(at(8), ledger.Complete{})
	expect("what was seen before everything was", "listed", 8, false)
	expect("a node that is in no list", "unlisted", 8, false)
	node(20, "unlisted", "b", ledger.ReadyUnknown, 19)
	expect("a node that was not in the list", "unlisted", 20, false)
	node(21, "unlisted", "b", ledger.ReadyFalse, 21)
	expect("the same outage, in the kubelet's own words", "unlisted", 20, false)
	node(30, "unlisted", "b", ledger.ReadyFalse, 29)
	expect("Ready in between, as nobody here has seen", "unlisted", 30, false)
	node(40, "unlisted", "c", ledger.ReadyUnknown, 29)
	expect("another Node object", "unlisted", 40, false)
	l.Apply(at(50), ledger.NodeGone{Name: "unlisted"})
	expect("a Node object that is deleted", "unlisted", 40, false)
	node(60, "listed", "a", ledger.ReadyTrue, 60)
	node(61, "listed", "a", ledger.ReadyUnknown, 61)
	expect("a node that is seen to fail", "listed", 61, true)
}
