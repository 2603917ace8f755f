// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
)

const newNode = ledger.NodeName("new")

func codesOf(v rules.Verdict) map[ledger.Code]bool {
	codes := map[ledger.Code]bool{}
	for _, r := range v.Reasons {
		codes[r.Code] = true
	}
	return codes
}

// Compares NewNode's earlier answer with Fit for each pod at an added node.
func TestNewNodeTwin(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		w := newWorld(proptest.Bytes(t, 500))
		w.lag = false
		for len(w.rest) > 12 {
			w.step()
		}
		before := w.snapshot()
		w.registerDriver(newNode, ledger.NoLimit)
		after := w.snapshot()
		for _, p := range w.pods() {
			r := rules.PodRequest(before, &p)
			got := w.arb.NewNode(before, r, w.Now)
			want := w.arb.Fit(after, rules.PodRequest(after, &p), newNode, w.Now)
			if !maps.Equal(codesOf(got), codesOf(want)) {
				w.fail(t, "%s at a new node: %v, want %v", p.Name, codesOf(got), codesOf(want))
			}
			nowhere := !got.Allowed() && len(w.arb.Yielding(after, rules.PodRequest(after, &p), newNode, w.Now)) == 0
			for i := range worldNodes {
				nowhere = nowhere && !w.arb.Fit(before, r, nodeName(i), w.Now).Allowed()
			}
			if _, said := w.arb.Nowhere(before, r, w.Now); said != nowhere {
				w.fail(t, "%s fits nowhere: %t, want %t (%v)", p.Name, said, nowhere, codesOf(got))
			}
		}
	})
}

// A policy's limit holds at new nodes too.
func TestPolicyLeavesNewNodesNoRoom(t *testing.T) {
	none := int32(0)
	w := newWorld(nil)
	l := ledger.New()
	now := w.Now
	pod := ledger.Pod{UID: "p", Namespace: "default", Name: "p", Volumes: []ledger.PodVolume{{Name: "data", Claim: "data"}}}
	for _, e := range []ledger.Event{
		ledger.NodeDrivers{Node: "n", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n", Limit: 4}}},
		ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: ledger.VolumeID{Driver: "disk", Handle: "h"}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "default", Name: "data"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "default", Name: "data"}, UID: "c", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode},
		ledger.Policy{Name: "none", Version: "1", Driver: "disk", MaxSlots: &none},
	} {
		l.Apply(now, e)
	}
	s := l.Snapshot()
	if v, nowhere := (rules.Arbiter{}).Nowhere(s, rules.PodRequest(s, &pod), now); !nowhere || v.First().Code != rules.NoFreeSlot {
		t.Errorf("a policy without slots: %v, nowhere: %t", v, nowhere)
	}
	l.Apply(now, ledger.Attachment{Name: ledger.AttachmentName(ledger.VolumeID{Driver: "disk", Handle: "h"}, "n"), UID: "va", Driver: "disk", Node: "n", PersistentVolume: "pv", Attached: true, Ours: true})
	s = l.Snapshot()
	if v, nowhere := (rules.Arbiter{}).Nowhere(s, rules.PodRequest(s, &pod), now); nowhere {
		t.Errorf("the volume is attached where it may stay, and fits nowhere: %v", v)
	}
}
