// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// concerned is a ledger with a node that is well, one that is dead, and an exclusive
// volume that a pod wants at a node.
func concerned(t *testing.T, podAt, heldAt ledger.NodeName, hold ledger.Hold) (ledger.Snapshot, *ledger.Volume, Need) {
	t.Helper()
	now := time.Unix(1000, 0)
	l := ledger.New()
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	for _, e := range []ledger.Event{
		ledger.NodeState{Name: "well", UID: "w", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
		ledger.NodeState{Name: "dead", UID: "x", Version: "1", Ready: ledger.ReadyUnknown, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}},
		ledger.NodeDrivers{Node: "well", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}}},
		ledger.NodeDrivers{Node: "dead", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}}},
		ledger.PersistentVolume{Name: "pv", Version: "1", Volume: id, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "1", PersistentVolume: "pv", Bound: true},
		ledger.Pod{UID: "p", Version: "1", Namespace: "shop", Name: "db", Node: podAt, Phase: ledger.PodLive, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
	} {
		l.Apply(now, e)
	}
	hold.Node, hold.Version = heldAt, "1"
	l.Apply(now, ledger.HoldSeen{Volume: id, Hold: hold})
	s := l.Snapshot()
	return s, s.Volume(id), PodRequest(s, s.Pod("p")).Needs[0]
}

// The hold names the node that is well, and what it says is about the dead one:
// advice has to name that.
func TestConcernNamesTheNodeOfTheReason(t *testing.T) {
	s, v, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldUnknown, Reason: NodeUnreachable})
	r, ok := Arbiter{}.Concern(s, v, time.Unix(1000, 0))
	if !ok || r.Code != NodeUnreachable || r.Node != "dead" {
		t.Errorf("the reason is %s at %q (%t)", r.Code, r.Node, ok)
	}
}

// Where there is no attachment, nothing is being attached: the hold's own reason
// stands, or the volume is not granted yet.
func TestNoAttachmentIsNotAttaching(t *testing.T) {
	now := time.Unix(1000, 0)
	s, _, need := concerned(t, "dead", "dead", ledger.Hold{State: ledger.HoldDetachPending, Reason: NodeUnreachable})
	if r := (Arbiter{}).Explain(s, need, "dead", now).First(); r.Code != NodeUnreachable || r.Node != "dead" {
		t.Errorf("at a dead node: %s at %q", r.Code, r.Node)
	}
	s, _, need = concerned(t, "well", "elsewhere", ledger.Hold{State: ledger.HoldHeld})
	if r := (Arbiter{}).Explain(s, need, "well", now).First(); r.Code == Attaching {
		t.Errorf("another node has it by the hold: %s", r.Code)
	}
}
