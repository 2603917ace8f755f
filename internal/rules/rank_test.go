// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Four nodes: volume in use, volume unused, empty, half full.
func TestRank(t *testing.T) {
	l, now := ledger.New(), time.Unix(1000, 0)
	disk := func(claim string, access ledger.Access) ledger.VolumeID {
		v := ledger.VolumeID{Driver: "d", Handle: claim}
		key := ledger.ClaimKey{Namespace: "s", Name: claim}
		l.Apply(now, ledger.PersistentVolume{Name: claim, Version: "1", Volume: v, Access: access, Claim: key})
		l.Apply(now, ledger.Claim{Key: key, UID: claim, Version: "1", PersistentVolume: claim, Bound: true, Access: access})
		return v
	}
	attach := func(v ledger.VolumeID, n ledger.NodeName) {
		l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(v, n), UID: string(n) + v.Handle, Version: "1", Driver: "d", Node: n, PersistentVolume: v.Handle, Ours: true, Attached: true})
	}
	nodes := []ledger.NodeName{"used", "still", "empty", "half"}
	for _, n := range nodes {
		l.Apply(now, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		l.Apply(now, ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}}})
	}
	data := disk("data", ledger.AccessMany)
	attach(data, "used")
	attach(data, "still")
	user := ledger.Pod{UID: "user", Version: "1", Namespace: "s", Name: "user", Node: "used", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	l.Apply(now, user)
	for i := range 2 {
		attach(disk(fmt.Sprint("other", i), ledger.AccessNode), "half")
	}
	asks := user
	asks.UID, asks.Name, asks.Node = "asks", "asks", ""
	s := l.Snapshot()
	r := rules.PodRequest(s, &asks)

	for n, want := range map[ledger.NodeName]int64{"used": 95, "still": 62, "empty": 12, "half": 4} {
		if got := (rules.Arbiter{}).Rank(s, r, n, rules.Weights{}); got != want {
			t.Errorf("by default %s has %d, want %d: by weights of 100, 60 and 20", n, got, want)
		}
	}
	for name, test := range map[string]struct {
		weights rules.Weights
		want    []ledger.NodeName
	}{
		"by default":                   {rules.Weights{}, nodes},
		"room only":                    {rules.Weights{Balance: 100}, nodes}, // the volume takes no further slot in its place
		"where it still is before use": {rules.Weights{Held: 10, Near: 100, Balance: 20}, []ledger.NodeName{"still", "used", "empty", "half"}},
	} {
		ranked := slices.Clone(nodes)
		score := map[ledger.NodeName]int64{}
		for _, n := range nodes {
			score[n] = rules.Arbiter{}.Rank(s, r, n, test.weights)
			if score[n] < 0 || score[n] > rules.MaxRank {
				t.Errorf("%s: %s has %d, which is not from 0 to %d", name, n, score[n], rules.MaxRank)
			}
		}
		slices.SortStableFunc(ranked, func(a, b ledger.NodeName) int { return int(score[b] - score[a]) })
		if !slices.Equal(ranked, test.want) {
			t.Errorf("%s: %v by %v, want %v", name, ranked, score, test.want)
		}
	}
}

func TestRankByNothing(t *testing.T) {
	s := ledger.New().Snapshot()
	need := rules.Request{Needs: []rules.Need{{Name: "data"}}}
	for _, w := range []rules.Weights{{Held: 1, Balance: -1}, {Balance: -1}, {Held: -1, Near: -1}} {
		if got := (rules.Arbiter{}).Rank(s, need, "n", w); got != 0 {
			t.Errorf("%+v: %d", w, got)
		}
	}
	if got := (rules.Arbiter{}).Rank(s, rules.Request{}, "n", rules.Weights{}); got != 0 {
		t.Errorf("of no volumes: %d", got)
	}
}

func TestRankWithoutRoom(t *testing.T) {
	l, now := ledger.New(), time.Unix(1000, 0)
	for n, limit := range map[ledger.NodeName]int32{"none": 0, "some": 2, "any": ledger.NoLimit} {
		l.Apply(now, ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: limit}}})
	}
	r := rules.Request{Needs: []rules.Need{{Volume: ledger.VolumeID{Driver: "d", Handle: "h"}}}}
	for n, want := range map[ledger.NodeName]int64{"none": 0, "nowhere": 0, "some": 50, "any": 100} {
		if got := (rules.Arbiter{}).Rank(l.Snapshot(), r, n, rules.Weights{Balance: 2}); got != want {
			t.Errorf("at %s: %d, want %d", n, got, want)
		}
	}
	if got := (rules.Arbiter{}).Rank(l.Snapshot(), r, "any", rules.Weights{Balance: 1}); got != 100 {
		t.Errorf("by the least weight: %d", got)
	}
}

// A volume is not near where it is being detached, or where only a kubelet lists it.
func TestRankOfWhatIsLeft(t *testing.T) {
	l, now := ledger.New(), time.Unix(1000, 0)
	disk := func(handle string) ledger.VolumeID { return ledger.VolumeID{Driver: "d", Handle: handle} }
	attach := func(handle string, n ledger.NodeName, leaves bool) {
		l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(disk(handle), n), UID: string(n) + handle, Version: "1", Driver: "d", Node: n, Inline: disk(handle), Attached: true, Deleting: leaves})
	}
	for _, n := range []ledger.NodeName{"there", "leaves", "lists", "full"} {
		l.Apply(now, ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 1}}})
	}
	attach("h", "there", false)
	attach("h", "leaves", true)
	attach("other", "full", false)
	l.Apply(now, ledger.NodeState{Name: "lists", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: []ledger.VolumeID{disk("h")}})
	r := rules.Request{Needs: []rules.Need{{Volume: disk("h")}}}
	for n, want := range map[ledger.NodeName]int64{"there": 100, "leaves": 0, "lists": 0, "full": 0} {
		if got := (rules.Arbiter{}).Rank(l.Snapshot(), r, n, rules.Weights{Near: 4}); got != want {
			t.Errorf("by where it is, %s has %d, want %d", n, got, want)
		}
	}
	if got := (rules.Arbiter{}).Rank(l.Snapshot(), r, "full", rules.Weights{Balance: 4}); got != 0 {
		t.Errorf("by its room, a full node has %d", got)
	}
}
