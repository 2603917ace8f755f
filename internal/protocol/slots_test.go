// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// written returns the number of writes until there is no news.
func written(t *testing.T, l *ledger.Ledger, n ledger.NodeName) int {
	t.Helper()
	writes := 0
	for range 20 {
		before := writes
		list := round(l.Snapshot(), n, nil)
		for _, d := range list {
			k := *d.Ticket
			if code := string(d.Verdict.First().Code); d.Ruling != Wait || code != k.Reason {
				k.Reason = code
				k.Phase = map[Ruling]ledger.TicketPhase{Wait: ledger.TicketPending, Grant: ledger.TicketGranted}[d.Ruling]
				k.Version += "1"
				l.Apply(now, k)
				writes++
			}
		}
		if writes == before {
			return writes
		}
	}
	t.Fatalf("something is written on and on: %d times so far", writes)
	return writes
}

// n1 is full. The tickets' order is their rank.
func crowded(kind ledger.TicketType, asked ...[]string) *ledger.Ledger {
	l := facts(
		ledger.NodeDrivers{Node: "n1", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "i-n1", Limit: 1}}},
		pod("full", "n1", "full"), pod("elsewhere", "n2", "elsewhere"),
	)
	disk := func(name string) {
		key := ledger.ClaimKey{Namespace: "s", Name: name}
		l.Apply(now, ledger.PersistentVolume{Name: name, UID: name, Version: "1", Volume: ledger.VolumeID{Driver: driver, Handle: name}, Access: ledger.AccessNode, Claim: key})
		l.Apply(now, ledger.Claim{Key: key, UID: name, Version: "1", PersistentVolume: name, Bound: true, Access: ledger.AccessNode})
	}
	disk("full")
	disk("elsewhere")
	for i, claims := range asked {
		for _, claim := range claims {
			if l.Snapshot().PersistentVolume(claim) == nil {
				disk(claim)
			}
		}
		k := ticket(fmt.Sprintf("t%02d", i), "n1", kind, claims...)
		k.Created = int64(i)
		l.Apply(now, k)
	}
	return l
}

func reasonOf(l *ledger.Ledger, name string) (granted bool, reason ledger.Code) {
	k := l.Snapshot().Ticket(ledger.TicketID{Namespace: "s", Name: "uid-" + name})
	return k.Phase == ledger.TicketGranted, ledger.Code(k.Reason)
}

// No ticket alternates between two reasons.
func TestFreedSlotGoesToTheFirst(t *testing.T) {
	for _, kind := range []ledger.TicketType{ledger.TypeBackup, ledger.TypeManual} {
		l := crowded(kind, []string{"v", "elsewhere"}, []string{"u"}, []string{"v"})
		written(t, l, "n1")
		for name, want := range map[string]ledger.Code{"t00": rules.HeldElsewhere, "t01": rules.NoFreeSlot, "t02": rules.NoFreeSlot} {
			if _, got := reasonOf(l, name); got != want {
				t.Errorf("%s, full: %s is told %s, want %s", kind, name, got, want)
			}
		}
		l.Apply(now, ledger.PodGone{UID: pod("full", "").UID})
		written(t, l, "n1")
		if granted, reason := reasonOf(l, "t01"); !granted {
			t.Errorf("%s, a slot is free: t01 is told %s", kind, reason)
		}
		if _, reason := reasonOf(l, "t02"); reason != rules.NoFreeSlot {
			t.Errorf("%s, a slot is free: t02 is told %s", kind, reason)
		}
	}
}

func TestFreedSlotIsToldToOne(t *testing.T) {
	for _, kind := range []ledger.TicketType{ledger.TypeBackup, ledger.TypeManual} {
		var asked [][]string
		for i := range 60 {
			asked = append(asked, []string{fmt.Sprint("own", i)})
		}
		l := crowded(kind, asked...)
		if writes := written(t, l, "n1"); writes != len(asked) {
			t.Errorf("%s: %d writes tell %d tickets that the node is full", kind, writes, len(asked))
		}
		l.Apply(now, ledger.PodGone{UID: pod("full", "").UID})
		if writes := written(t, l, "n1"); writes != 1 {
			t.Errorf("%s: one slot came free, and that took %d writes", kind, writes)
		}
		if granted, reason := reasonOf(l, "t00"); !granted {
			t.Errorf("%s: the first is told %s", kind, reason)
		}
	}
}

// Otherwise each change would rewrite all others.
func TestWordsOfAFullNodeStay(t *testing.T) {
	l := crowded(ledger.TypeManual, []string{"a"}, []string{"b"}, []string{"c"})
	words := map[string]bool{}
	for range 2 {
		written(t, l, "n1")
		list := round(l.Snapshot(), "n1", nil)
		for _, d := range list {
			words[d.Verdict.First().Message()] = true
		}
	}
	if len(words) != 1 {
		t.Errorf("they are told %v", words)
	}
}

// The type decides, not the status.
func TestSlotIsKeptForWhoDoesNotYield(t *testing.T) {
	for kind, want := range map[ledger.TicketType]bool{ledger.TypeBackup: true, ledger.TypeManual: false} {
		l := crowded(kind, []string{"a", "b"}, []string{"c"})
		l.Apply(now, ledger.NodeDrivers{Node: "n1", Version: "3", Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "i-n1", Limit: 2}}})
		written(t, l, "n1")
		if granted, reason := reasonOf(l, "t01"); granted != want {
			t.Errorf("%s: the second, for one volume, is granted: %t (%s)", kind, granted, reason)
		}
		if _, reason := reasonOf(l, "t00"); reason != rules.NoFreeSlot {
			t.Errorf("%s: the first is told %s", kind, reason)
		}
	}
}
