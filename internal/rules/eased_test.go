// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
)

// Eased and Fit agree in random worlds.
func TestEasedMissesNothing(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		w := newWorld(proptest.Bytes(t, 500))
		watched, changes := w.ledger, w.ledger.Gather()
		before, _, _ := changes.Take()
		for len(w.rest) > 0 {
			for range 1 + w.below(4) {
				w.step()
			}
			if w.ledger != watched { // the controller has been restarted
				watched, changes = w.ledger, w.ledger.Gather()
				before, _, _ = changes.Take()
				continue
			}
			after, volumes, _ := changes.Take()
			w.compareEased(t, before, after, volumes)
			before = after
		}
	})
}

func (w *randomWorld) compareEased(t *rapid.T, before, after ledger.Snapshot, touched map[ledger.VolumeID]bool) {
	for _, p := range w.pods() {
		was, is := rules.PodRequest(before, &p), rules.PodRequest(after, &p)
		own := func(n rules.Need) bool { return touched[n.Volume] }
		if slices.ContainsFunc(was.Needs, own) || slices.ContainsFunc(is.Needs, own) || !w.arb.Admissible(before, was).Allowed() {
			continue
		}
		for i := range worldNodes {
			n := nodeName(i)
			if w.arb.Fit(after, is, n, w.Now).Allowed() && !w.arb.Fit(before, was, n, w.Now).Allowed() && !rules.Eased(before, after, is, n) {
				w.fail(t, "%s has come to fit %s, which is said not to be easier", p.Name, n)
			}
		}
	}
}

// A shared volume was free before.
func TestFencedSince(t *testing.T) {
	for access, want := range map[ledger.Access]bool{ledger.AccessNode: true, ledger.AccessPod: true, ledger.AccessMany: false} {
		l, began, after := ledger.New(), time.Now(), time.Minute
		key := ledger.ClaimKey{Namespace: "shop", Name: "data"}
		pod := ledger.Pod{UID: "p", Namespace: "shop", Name: "p", Volumes: []ledger.PodVolume{{Name: "data", Claim: "data"}}}
		holder := pod
		holder.UID, holder.Name, holder.Node = "holder", "holder", "n1"
		for _, event := range []ledger.Event{
			ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: &after},
			ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyUnknown, Managed: true, Reporting: true},
			ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: ledger.VolumeID{Driver: "d", Handle: "data"}, Access: access, Claim: key},
			ledger.Claim{Key: key, UID: "data", PersistentVolume: "pv", Bound: true, Access: access}, pod, holder,
		} {
			l.Apply(began, event)
		}
		s := l.Snapshot()
		request := rules.PodRequest(s, &pod)
		if rules.FencedSince(s, began, s, began.Add(after-time.Second), request) {
			t.Errorf("access %v: fenced before the time of the policy is over", access)
		}
		if got := rules.FencedSince(s, began, s, began.Add(after+time.Second), request); got != want {
			t.Errorf("access %v: fenced since: %t, want %t", access, got, want)
		}
	}
}
