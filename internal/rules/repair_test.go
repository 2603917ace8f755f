// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The pause before the next order for a volume grows with each failure of its own orders only.
func TestRepairPause(t *testing.T) {
	v, other := ledger.VolumeID{Driver: "d", Handle: "a"}, ledger.VolumeID{Driver: "d", Handle: "b"}
	now := time.Unix(1_700_000_000, 0)
	l := ledger.New()
	l.Apply(now, ledger.NodeWord{Node: "n", UID: "w", Version: "1", Has: []ledger.VolumeID{v, other}})
	for i, want := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		n := l.Snapshot().Node("n")
		if got := repairPause(n, v, now); got != want*time.Second {
			t.Errorf("after %d failures: %s, want %s", i, got, want*time.Second)
		}
		if got := repairPause(n, v, now.Add(want*time.Second)); got != 0 {
			t.Errorf("after %d failures and the pause: %s", i, got)
		}
		if got := repairPause(n, other, now); got != 0 {
			t.Errorf("after %d failures another volume waits for %s", i, got)
		}
		l.Apply(now, ledger.UnstageNotOrdered{Volume: v, Node: "n"})
	}
}

// No order relies on a report of another boot or of an unknown kubelet start, nor on a moorage-node that
// may not unstage.
func TestCanRepair(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ledger.NodeWord)
		want   bool
	}{
		"it can":                 {func(*ledger.NodeWord) {}, true},
		"it may not":             {func(w *ledger.NodeWord) { w.Repairs = false }, false},
		"another boot":           {func(w *ledger.NodeWord) { w.BootID = "c" }, false},
		"another Node":           {func(w *ledger.NodeWord) { w.NodeUID = "x" }, false},
		"not everything is read": {func(w *ledger.NodeWord) { w.Whole = false }, false},
		"no start is known":      {func(w *ledger.NodeWord) { w.KubeletStarted = 0 }, false},
	} {
		word := ledger.NodeWord{Node: "n", UID: "w", Version: "1", NodeUID: "u", BootID: "b", KubeletStarted: 1, Repairs: true, Whole: true}
		test.change(&word)
		l := ledger.New()
		l.Apply(time.Unix(1, 0), ledger.NodeState{Name: "n", UID: "u", Version: "1", BootID: "b"})
		l.Apply(time.Unix(1, 0), word)
		if got := canRepair(l.Snapshot().Node("n")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A node found a pod record that may be of a volume: it has not reported that this volume is gone, but
// other volumes are.
func TestUnreadIsNotGone(t *testing.T) {
	v, other := ledger.VolumeID{Driver: "d", Handle: "h"}, ledger.VolumeID{Driver: "d", Handle: "o"}
	l := ledger.New()
	for _, e := range []ledger.Event{
		ledger.NodeState{Name: "n", UID: "u", Version: "1", BootID: "b"},
		ledger.PersistentVolume{Name: "pv", UID: "p", Version: "1", Volume: v},
		ledger.NodeWord{Node: "n", UID: "w", Version: "1", NodeUID: "u", BootID: "b", Look: 1, Looked: 1, Whole: true, Unread: []ledger.Unread{{PersistentVolume: "pv"}}},
	} {
		l.Apply(time.Unix(1, 0), e)
	}
	place := &ledger.NodeVolume{Node: "n"}
	place.Proof.Look = 1
	if s := l.Snapshot(); saidGone(s, &ledger.Volume{ID: v}, place) || !saidGone(s, &ledger.Volume{ID: other}, place) {
		t.Error("a record that can't be read counts as gone, or is taken for another volume's")
	}
}

// An order is withdrawn, also with a call in flight, if moorage-node can't read everything about its
// volume, or after a restart of kubelet or machine.
func TestOrderLasts(t *testing.T) {
	v, other := ledger.VolumeID{Driver: "d", Handle: "h"}, ledger.VolumeID{Driver: "d", Handle: "o"}
	order := ledger.UnstageOrder{Volume: v, Number: 1, BootID: "b", KubeletStarted: 1, Seconds: 30}
	for name, test := range map[string]struct {
		change   func(*ledger.NodeWord)
		reported bool
		want     bool
	}{
		"all is read":                      {func(*ledger.NodeWord) {}, false, true},
		"a pod's record is not":            {func(w *ledger.NodeWord) { w.Unread = []ledger.Unread{{PersistentVolume: "pv"}} }, false, false},
		"that of another volume is not":    {func(w *ledger.NodeWord) { w.Unread = []ledger.Unread{{PersistentVolume: "other"}} }, false, true},
		"that of an unknown volume is not": {func(w *ledger.NodeWord) { w.Unread = []ledger.Unread{{PersistentVolume: "gone"}} }, false, false},
		"nothing is sure to be read":       {func(w *ledger.NodeWord) { w.Whole = false }, false, false},
		"the kubelet has started again":    {func(w *ledger.NodeWord) { w.KubeletStarted = 2 }, false, false},
		"the volume is in volumesAttached": {func(*ledger.NodeWord) {}, true, false},
	} {
		word := ledger.NodeWord{
			Node: "n", UID: "w", Version: "1", NodeUID: "u", BootID: "b", KubeletStarted: 1, Repairs: true, Whole: true, Has: []ledger.VolumeID{v},
			Orders: []ledger.UnstageOrder{order}, Answers: []ledger.UnstageAnswer{{Volume: v, Number: 1, Result: ledger.UnstageCalling, Unanswered: true}},
		}
		test.change(&word)
		l := ledger.New()
		for _, e := range []ledger.Event{
			ledger.NodeState{Name: "n", UID: "u", Version: "1", BootID: "b"},
			ledger.PersistentVolume{Name: "pv", UID: "p", Version: "1", Volume: v},
			ledger.PersistentVolume{Name: "other", UID: "q", Version: "1", Volume: other},
			word,
		} {
			l.Apply(time.Unix(1, 0), e)
		}
		s := l.Snapshot()
		p := Arbiter{}.planner(s, &ledger.Volume{ID: v}, time.Unix(1, 0))
		place := &ledger.NodeVolume{Node: "n", Reported: test.reported}
		if got := p.orderLasts(s.Node("n"), place, order); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
